#!/bin/sh
# dramatiq: the permit of a worker that died never comes back while the other workers go on.
#
# Expected: a ConcurrentRateLimiter of two permits has a time to live, after which the permit of a worker that was killed is
#   free again.  "ttl" is documented as the time in milliseconds that keys may live for.
# Found: with a ttl of two seconds, the permit of the dead is still missing after ten, as the work of one other goes on, and
#   only ever one of two works.  If all are idle for two seconds, it is back.
# Where: dramatiq 2.2.1 with redis-py 7.4.0 on redis-server, dramatiq/rate_limits/backends/redis.py.  All permits are one number
#   in one key, and each incr() and decr() sets it with the whole ttl again.
# Why it matters: each crash takes a permit away from a busy system, which gets slower without an error, and stands still after
#   the last one.  The ttl looks like the remedy, and a test with idle workers shows that it is.

. "$(dirname "$0")/lib.sh"

install_python dramatiq==2.2.1 redis==7.4.0
start_redis

cat >"$scratch/run.py" <<'END'
import sys, time
from redis import Redis
from dramatiq.rate_limits import ConcurrentRateLimiter
from dramatiq.rate_limits.backends import RedisBackend

def limiter():
    return ConcurrentRateLimiter(RedisBackend(client=Redis(unix_socket_path=sys.argv[1])), "job", limit=2, ttl=2000)

def free():
    with limiter().acquire(raise_on_failure=False) as first, limiter().acquire(raise_on_failure=False) as second:
        return first + second

print("permits at first:", free())
dead = limiter().acquire()
dead.__enter__()  # and the worker dies
print("permits after the death of a worker:", free())
for _ in range(20):
    with limiter().acquire():
        time.sleep(0.5)
print("permits after 10 s, in which another worked:", free())
time.sleep(4)
print("permits after 4 s, in which nobody worked:", free())
del dead
END
"$python" "$scratch/run.py" "$redis" >"$scratch/said" 2>"$scratch/log" || give_up "run.py: $(tail -n 1 "$scratch/log")"

check "$scratch/said" <<'END'
permits at first: 2
permits after the death of a worker: 1
permits after 10 s, in which another worked: 1
permits after 4 s, in which nobody worked: 2
END
