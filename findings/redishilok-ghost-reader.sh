#!/bin/sh
# redishilok: a refused write lock of "a/b" leaves a read lock of "a", which the traffic of others keeps for ever.
#
# Expected: acquire_write("a/b") takes a shared lock of "a" on its way. If "b" is held by another, all is given back, and
#   when that one has released, "a" is free.
# Found: the shared lock of the refused one stays. Its time to live is that of the list of all readers of "a", so each
#   further lock below "a" renews it, and nobody gets a write lock of "a".
# Where: redishilok 1.1.0, redishilok/hilok.py, _release_hierarchy(): the last lock of the list is released as the kind
#   that was asked for. After a failure the list ends with the parent, which is held shared and released as a writer.
# Why it matters: such a lock of the whole tree is for rare work (a backup, a removal), and it is refused without a holder
#   as long as the program is in use. A refused try, of all things, is what blocks it.

. "$(dirname "$0")/lib.sh"

install_python redishilok==1.1.0 redis==5.3.1
start_redis

cat >"$scratch/run.py" <<'END'
import asyncio, sys
import redis.asyncio
from redishilok import RedisHiLok, RedisHiLokError

async def main():
    client = redis.asyncio.Redis(unix_socket_path=sys.argv[1])
    hilok = RedisHiLok(client, ttl=2000)

    async def write(path):
        try:
            token = await hilok.acquire_write(path, block=False)
            print(f"write lock of {path}: taken")
            return token
        except RedisHiLokError:
            print(f"write lock of {path}: refused")

    async def release(path, token):
        await hilok.release_write(path, token)
        print(f"write lock of {path}: released")

    await release("a", await write("a"))
    token = await write("a/b")
    await write("a/b")
    await release("a/b", token)
    print("three times the time to live, with other locks below a, each released")
    for _ in range(30):
        async with hilok.read("a/c"):
            await asyncio.sleep(0.2)
    print("readers of a:", await client.llen("a:readers"))
    await write("a")
    await client.aclose()

asyncio.run(main())
END
"$python" "$scratch/run.py" "$redis" >"$scratch/said"

check "$scratch/said" <<'END'
write lock of a: taken
write lock of a: released
write lock of a/b: taken
write lock of a/b: refused
write lock of a/b: released
three times the time to live, with other locks below a, each released
readers of a: 1
write lock of a: refused
END
