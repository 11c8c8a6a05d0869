#!/bin/sh
# sherlock: a lock with an expiry of half a second raises an error and is taken for ever.
#
# Expected: either the lock expires after 0.5 s, as its timeout=0.5 is half a second, or the value is refused and
#   nothing is taken.
# Found: acquire() of RedisLock(expire=0.5) raises a ResponseError of the server, and the key is there without any time
#   to live. No later acquire() succeeds, whatever its expire, until somebody deletes the key by hand.
# Where: sherlock 0.4.1, sherlock/lock.py, class RedisLock, the script of its acquire: SETNX, then EXPIRE with the
#   number as it came. redis-server keeps what a script has written before an error.
# Why it matters: expiry is what protects from an owner that died; here the one try with a wrong number is such an
#   owner. Any lock script that sets first and expires afterwards has the same end.

. "$(dirname "$0")/lib.sh"

install_python sherlock==0.4.1 redis==8.1.0
start_redis

cat >"$scratch/run.py" <<'END'
import os, sys, time
import redis, sherlock

client = redis.Redis(unix_socket_path=sys.argv[1])
half = sherlock.RedisLock("job", client=client, expire=0.5, timeout=0.5)
try:
    print("acquire, 0.5 s:", half.acquire(blocking=False))
except redis.ResponseError as error:
    print("acquire, 0.5 s:", "not an integer" if "not an integer" in str(error) else error)
time.sleep(1)
print("key after 1 s:", bool(client.exists("job")), "without expiry:", client.pttl("job") == -1)
print("acquire, 5 s:", sherlock.RedisLock("job", client=client, expire=5).acquire(blocking=False))
sys.stdout.flush()
os._exit(0)     # its destructor cannot run at the end of the interpreter
END
"$python" "$scratch/run.py" "$redis" >"$scratch/said"

check "$scratch/said" <<'END'
acquire, 0.5 s: not an integer
key after 1 s: True without expiry: True
acquire, 5 s: False
END
