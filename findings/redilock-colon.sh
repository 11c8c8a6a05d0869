#!/bin/sh
# python-redilock: a lock whose name has a colon cannot be released or extended; everybody waits until it expires.
#
# Expected: "job:42", the usual form of a key in Redis, is as good a name as any. lock() takes it without a word.
# Found: lock("job:42") succeeds and gives a token; unlock() and extend() of that token return False and do nothing. The
#   with statement ends quietly, and the key is still there for the rest of its time to live.
# Where: python-redilock 0.6.0, redilock/base.py. The token is "_LOCK:name:random"; _token2lockname() splits it at the
#   colons and takes anything but three parts for no token.
# Why it matters: each use of the lock costs the whole time to live, which looks like contention. False from extend() is
#   documented as "owned by someone else", so a worker gives up work that nobody else does.

. "$(dirname "$0")/lib.sh"

install_python python-redilock==0.6.0 redis==8.1.0
start_redis
port=$((20000 + $$ % 10000))
redis-cli -s "$redis" config set port "$port" >"$scratch/log"

cat >"$scratch/run.py" <<'END'
import sys
import redis
from redilock.sync_redilock import DistributedLock

port = int(sys.argv[1])
client = redis.Redis(port=port)
lock = DistributedLock(redis_port=port, ttl=60)
for name in "job", "job:42":
    print(name)
    token = lock.lock(name, block=False)
    print("  lock:", bool(token))
    print("  extend:", lock.extend(token))
    print("  unlock:", lock.unlock(token))
    print("  lock again:", bool(lock.lock(name, block=False)))
    client.delete(name)
    with lock(name):
        pass
    print("  key is there after the with statement:", bool(client.exists(name)))
END
"$python" "$scratch/run.py" "$port" >"$scratch/said"

check "$scratch/said" <<'END'
job
  lock: True
  extend: True
  unlock: True
  lock again: True
  key is there after the with statement: False
job:42
  lock: True
  extend: False
  unlock: False
  lock again: False
  key is there after the with statement: True
END
