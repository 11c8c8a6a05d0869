#!/bin/sh
# redishilok: a timeout of three seconds is twelve for a write lock and one and a half for a read lock.
#
# Expected: timeout is, as documented, the maximum time to wait for the lock, in seconds.
# Found: whoever asks for a held path with timeout=3 waits for four times as long if it wants to write, and gives up
#   after half the time if it wants to read.
# Where: redishilok 1.1.0, redishilok/rwlock.py. acquire_write_lock() and acquire_read_lock() count 0.1 s for each try, and
#   sleep 0.4 s and 0.05 s after it. No clock is read.
# Why it matters: a request with a limit of its own has long been given up when the write lock comes, and holds it then
#   for nobody. A slow server adds to the difference, since the time of the commands counts nowhere.

. "$(dirname "$0")/lib.sh"

install_python redishilok==1.1.0 redis==5.3.1
start_redis

cat >"$scratch/run.py" <<'END'
import asyncio, sys, time
import redis.asyncio
from redishilok import RedisHiLok, RedisHiLokError

async def main():
    client = redis.asyncio.Redis(unix_socket_path=sys.argv[1])
    hilok = RedisHiLok(client, ttl=300000)
    await hilok.acquire_write("job")
    print("job is held for writing, the timeout of the others is 3 s")
    waited = []
    for acquire in hilok.acquire_write, hilok.acquire_read:
        begin = time.monotonic()
        try:
            await acquire("job", timeout=3)
        except RedisHiLokError:
            waited.append(time.monotonic() - begin)
    print("waited", waited, file=sys.stderr)
    print("a writer waits for more than 9 s:", waited[0] > 9)
    print("a reader waits for less than 2.5 s:", waited[1] < 2.5)
    await client.aclose()

asyncio.run(main())
END
"$python" "$scratch/run.py" "$redis" >"$scratch/said"

check "$scratch/said" <<'END'
job is held for writing, the timeout of the others is 3 s
a writer waits for more than 9 s: True
a reader waits for less than 2.5 s: True
END
