#!/bin/sh
# walrus: who waits for a lock with a time to live below a second waits for ever, also when the lock has long been free.
#
# Expected: acquire() blocks, as documented, "until the lock becomes free (either by being released or expiring)".
# Found: the holder dies, and its lock expires after half a second.  A waiter whose ttl is 500 does not come back, while any
#   newcomer gets the lock.  A waiter whose ttl is 1000 has it within two seconds.
# Where: walrus 0.9.8 with redis-py 7.4.0 on redis-server, walrus/lock.py, Lock.acquire().  Between two tries it waits for a
#   release with BLPOP for ttl // 1000 seconds.  That is 0 below a second, and BLPOP waits for ever with 0.
# Why it matters: a short time to live is chosen so that others go on soon after a crash, and has the contrary effect on
#   those who wait already.  They go on only after some other owner's release, which wakes one of them.

. "$(dirname "$0")/lib.sh"

install_python walrus==0.9.8 redis==7.4.0
start_redis

cat >"$scratch/run.py" <<'END'
import sys, threading, time
from walrus import Database

def database():
    return Database(unix_socket_path=sys.argv[1])

for ttl in 1000, 500:
    name = f"job-{ttl}"
    database().lock(name, ttl=ttl).acquire()  # and its owner dies
    waiter = threading.Thread(target=database().lock(name, ttl=ttl).acquire, daemon=True)
    waiter.start()
    waiter.join(15)
    print(f"ttl {ttl}: whoever waited got the lock of the dead within 15 s: {not waiter.is_alive()}")
    time.sleep(ttl / 1000 + 1)
    print(f"  a newcomer gets it: {database().lock(name, ttl=ttl).acquire(block=False)}")
    print(f"  whoever waited still waits: {waiter.is_alive()}", flush=True)
END
"$python" "$scratch/run.py" "$redis" >"$scratch/said" 2>"$scratch/log" || give_up "run.py: $(tail -n 1 "$scratch/log")"

check "$scratch/said" <<'END'
ttl 1000: whoever waited got the lock of the dead within 15 s: True
  a newcomer gets it: True
  whoever waited still waits: False
ttl 500: whoever waited got the lock of the dead within 15 s: False
  a newcomer gets it: True
  whoever waited still waits: True
END
