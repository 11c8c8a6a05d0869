#!/bin/sh
# aioredlock: a late unlock() of a lock that has expired stops the renewal of the next lock of that name, which is then lost.
#
# Expected: unlock() of a lock that its owner has lost raises LockError and leaves the lock of the present owner alone.
# Found: it raises, and the present owner's lock, if it is of the same manager, is never renewed again.  It ends after what
#   is left of internal_lock_timeout, another program gets it, and its valid still says True.
# Where: aioredlock 0.7.3 (with aioredis 1.3.1) on redis-server, aioredlock/algorithm.py.  The manager keeps its watchdogs by
#   the name of the resource, not by lock; unlock() cancels the one of that name before it asks the server whose lock it is.
# Why it matters: one manager for a whole program is the usual way, as it has the connections.  A first request with a
#   lock_timeout that was too short takes the second one's lock with it, although the server's check of the identifier is
#   there to prevent that, and two work at once.

. "$(dirname "$0")/lib.sh"

install_python aioredlock==0.7.3 aioredis==1.3.1
start_redis

cat >"$scratch/run.py" <<'END'
import asyncio, logging, sys, warnings
from aioredlock import Aioredlock, LockError

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

async def tell(title, lock):
    try:
        await lock
        print(f"{title}: done")
    except LockError:
        print(f"{title}: LockError")

async def run(late):
    one, two = [Aioredlock([sys.argv[1]], internal_lock_timeout=4) for _ in range(2)]
    first = await one.lock("job", lock_timeout=1)
    await asyncio.sleep(2)
    second = await one.lock("job")
    print("the first lock has expired, and the second is taken")
    if late:
        await tell("unlock() of the first", one.unlock(first))
    await asyncio.sleep(12)
    await tell("lock() by another program, 12 s later", two.lock("job"))
    print("the second lock is valid:", second.valid)
    await one.destroy()
    await two.destroy()

asyncio.run(run(False))
print()
asyncio.run(run(True))
END
"$python" "$scratch/run.py" "$redis" >"$scratch/said" 2>"$scratch/log" || give_up "run.py: $(tail -n 1 "$scratch/log")"

check "$scratch/said" <<'END'
the first lock has expired, and the second is taken
lock() by another program, 12 s later: LockError
the second lock is valid: True

the first lock has expired, and the second is taken
unlock() of the first: LockError
lock() by another program, 12 s later: done
the second lock is valid: True
END
