#!/bin/sh
# python-redis-lock: after a lost lock, acquire() raises an error and takes the lock all the same.
#
# Expected: an acquire() that raises has taken nothing. A Lock that lost its key (expired, or deleted by an operator)
#   and whose release() said so can be acquired again.
# Found: with auto_renewal=True the next acquire() of the object raises AlreadyStarted, and the key is there with the
#   object's id. Nobody renews it; everybody waits until it expires.
# Where: python-redis-lock 4.0.1, redis_lock/__init__.py. The thread of _lock_renewer() ends with NotAcquired.
#   _stop_lock_renewer() returns early for a thread that is no longer alive and leaves _lock_renewal_thread set, so
#   _start_lock_renewer(), which acquire() calls after the SET, refuses.
# Why it matters: the usual answer to an error of acquire() is to try again later. Each try takes the lock for a whole
#   expiry without anybody working, and the job stands still until the process is started anew.

. "$(dirname "$0")/lib.sh"

install_python python-redis-lock==4.0.1 redis==8.1.0
start_redis

cat >"$scratch/run.py" <<'END'
import sys, threading
import redis, redis_lock

threading.excepthook = lambda args: None    # the renewer's end, which is expected
client = redis.Redis(unix_socket_path=sys.argv[1])
lock = redis_lock.Lock(client, "job", expire=60, auto_renewal=True)
lock._lock_renewal_interval = 0.1           # documented way to renew more often

print("acquire:", lock.acquire())
client.delete("lock:job")
lock._lock_renewal_thread.join()
try:
    lock.release()
except redis_lock.NotAcquired:
    print("release: NotAcquired")
print("free:", not client.exists("lock:job"))
try:
    print("acquire:", lock.acquire())
except redis_lock.AlreadyStarted:
    print("acquire: AlreadyStarted")
print("taken by this object:", lock.get_owner_id() == lock.id)
print("another can acquire:", redis_lock.Lock(client, "job", expire=60).acquire(blocking=False))
END
"$python" "$scratch/run.py" "$redis" >"$scratch/said"

check "$scratch/said" <<'END'
acquire: True
release: NotAcquired
free: True
acquire: AlreadyStarted
taken by this object: True
another can acquire: False
END
