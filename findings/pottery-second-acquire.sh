#!/bin/sh
# pottery: after a second acquire() that fails, the lock that the object holds can no longer be released.
#
# Expected: a Redlock that is held and asked again says False, and is held and released as before. threading.Lock,
#   whose interface it follows, does so.
# Found: acquire(blocking=False) of the holder returns False; then locked() is 0, release() raises
#   ReleaseUnlockedLock, extend() raises ExtendUnlockedLock, and the key stays until it expires.
# Where: pottery 3.0.1, pottery/redlock.py, _acquire_masters(): each try begins with a new UUID for the object, and a
#   failed one does not put the old one back.
# Why it matters: a guard such as "if not lock.acquire(blocking=False): return" in a function that is called from under
#   the lock ends the lock of the caller: its release() fails, and the others wait for the whole auto_release_time.

. "$(dirname "$0")/lib.sh"

install_python pottery==3.0.1 redis==8.1.0
start_redis

cat >"$scratch/run.py" <<'END'
import sys
import pottery, redis

client = redis.Redis(unix_socket_path=sys.argv[1])
lock = pottery.Redlock(key="job", masters={client}, auto_release_time=60)
print("acquire:", lock.acquire(blocking=False))
print("held:", lock.locked() > 0)
print("acquire again:", lock.acquire(blocking=False))
print("held:", lock.locked() > 0)
for name in "extend", "release":
    try:
        getattr(lock, name)()
        print(f"{name}: done")
    except Exception as error:
        print(f"{name}: {type(error).__name__}")
print("key is there:", bool(client.exists(lock.key)))
END
"$python" "$scratch/run.py" "$redis" >"$scratch/said"

check "$scratch/said" <<'END'
acquire: True
held: True
acquire again: False
held: False
extend: ExtendUnlockedLock
release: ReleaseUnlockedLock
key is there: True
END
