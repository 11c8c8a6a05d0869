#!/bin/sh
# sherlock: a lock without expiry is granted to everybody.
#
# Expected: RedisLock(expire=None), which the library documents as a lock that never expires, excludes others until it
#   is released.
# Found: each acquire() returns True, and no key is left on the server; release() then says that the lock was not
#   acquired by this instance.
# Where: sherlock 0.4.1, sherlock/lock.py. RedisLock._acquire() passes -1 for None, and _acquire_script leaves EXPIRE
#   out if `ARGV[2] ~= -1` is false. Arguments of a script are strings, and in Lua no string equals a number, so EXPIRE
#   always runs; redis-server deletes a key whose expiry is -1.
# Why it matters: who switches the expiry off because the job may be long has no lock at all, and hears of it at the
#   release at the earliest. The same comparison in any lock script is as wrong.

. "$(dirname "$0")/lib.sh"

install_python sherlock==0.4.1 redis==8.1.0
start_redis

cat >"$scratch/run.py" <<'END'
import os, sys
import redis, sherlock

client = redis.Redis(unix_socket_path=sys.argv[1])
for expire in 60, None:
    print("expire:", expire)
    one, two = (sherlock.RedisLock(f"job {expire}", client=client, expire=expire) for _ in "12")
    print("  first acquire:", one.acquire(blocking=False))
    print("  second acquire:", two.acquire(blocking=False))
    print("  key is there:", bool(client.exists(f"job {expire}")))
    try:
        one.release()
        print("  first release: done")
    except sherlock.LockException as error:
        print("  first release:", error)
sys.stdout.flush()
os._exit(0)     # its destructor cannot run at the end of the interpreter
END
"$python" "$scratch/run.py" "$redis" >"$scratch/said"

check "$scratch/said" <<'END'
expire: 60
  first acquire: True
  second acquire: False
  key is there: True
  first release: done
expire: None
  first acquire: True
  second acquire: True
  key is there: False
  first release: Lock could not be released because it was not acquired by this instance.
END
