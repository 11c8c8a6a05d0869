#!/bin/sh
# burner-redis: a lock with a time to live below a millisecond is granted to everybody.
#
# Expected: as with redis-server and redis-py, whose lock() it follows: SET with PX 0 is refused with "invalid expire
#   time", so acquire() raises.
# Found: SET with NX and px=0 answers True and sets nothing. Lock.acquire() with timeout 0.0005 (or 0) returns True to
#   each caller, and release() then says that the lock is no longer owned.
# Where: burner-redis 0.1.7, burner_redis/lock.py, Lock.acquire(): int(timeout * 1000) is 0; the embedded server's SET
#   takes 0 as a time that has passed already.
# Why it matters: time to live that is computed ("what is left of the budget") reaches zero one day. On the server that
#   raises an error; on the embedded one two workers go on together.

. "$(dirname "$0")/lib.sh"

install_python burner-redis==0.1.7 redis==8.1.0
start_redis

cat >"$scratch/run.py" <<'END'
import asyncio, sys
import burner_redis, redis, redis.asyncio

async def main():
    for title, client in (("redis-server", redis.asyncio.Redis(unix_socket_path=sys.argv[1])),
                          ("burner-redis", burner_redis.BurnerRedis())):
        print(title)
        for who in "ab":
            lock = client.lock("job", timeout=0.0005)
            try:
                print(f"  acquire by {who}:", await lock.acquire(blocking=False))
            except redis.ResponseError:
                print(f"  acquire by {who}: refused")
        print("  key is there:", bool(await client.exists("job")))
        await client.aclose()

asyncio.run(main())
END
"$python" "$scratch/run.py" "$redis" >"$scratch/said"

check "$scratch/said" <<'END'
redis-server
  acquire by a: refused
  acquire by b: refused
  key is there: False
burner-redis
  acquire by a: True
  acquire by b: True
  key is there: False
END
