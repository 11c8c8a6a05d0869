#!/bin/sh
# redis-py: a server that is busy for six seconds makes acquire() say False for the lock that it takes, and INCR count twice.
#
# Expected: acquire(blocking=False) of a free lock returns True or raises an error.  incr() adds 1, or raises an error.  With
#   a server that is slow for once, one waits or hears of it.
# Found: acquire() returns False, and the key is there for its whole time to live, with a token that no object has, so
#   nobody can release it.  incr() returns 2 for a new key.  A release() that is late raises LockNotOwnedError although it
#   has released.  No warning is given.
# Where: redis-py 8.1.0 as it comes, redis-server 7.0.15.  An answer that takes more than 5 s is a TimeoutError (7.4.0 had no
#   such limit), and after one the command is sent again on a new connection, up to ten times.  The server executes what
#   the old connection brought, too, and first.
# Why it matters: one slow command of anybody, and all who ask for a lock at that time take it and believe it busy, so
#   nothing runs until it expires.  Permits that are counted by INCR are counted twice.  With Retry(NoBackoff(), 0) the
#   client of the locks gives the error.

. "$(dirname "$0")/lib.sh"

install_python redis==8.1.0
start_redis
# the slow script stands for any slow command: after 5 s of a script, the server would refuse other commands with BUSY
redis-cli -s "$redis" config set busy-reply-threshold 60000 >"$scratch/log"

cat >"$scratch/run.py" <<'END'
import sys, threading, time
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

SLOW = """local function now() local t = redis.call('TIME') return t[1] + t[2] / 1e6 end
local start = now()
repeat until now() > start + 6"""

def while_busy(title, call):
    """call() is executed by a client whose connection is open, while the server executes a slow script of another"""
    other = redis.Redis(unix_socket_path=sys.argv[1], socket_timeout=None)
    thread = threading.Thread(target=other.eval, args=(SLOW, 0))
    thread.start()
    time.sleep(0.5)
    try:
        print(f"{title}:", call())
    except redis.exceptions.RedisError as error:
        print(f"{title}:", type(error).__name__)
    thread.join()

for client in (redis.Redis(unix_socket_path=sys.argv[1]),
               redis.Redis(unix_socket_path=sys.argv[1], retry=Retry(NoBackoff(), 0))):
    client.flushall()
    print("as it comes" if client.get_retry().get_retries() else "without retries")
    first = client.lock("first", timeout=600)
    while_busy("  acquire()", lambda: first.acquire(blocking=False))
    print("    owned:", first.owned() if first.local.token else False)
    print("    key on the server:", client.exists("first"), "for", round(client.ttl("first"), -1), "s")
    second = client.lock("second", timeout=600)
    second.acquire()
    second.release()  # the server has the script of release() from now on
    second.acquire()
    while_busy("  release()", second.release)
    print("    key on the server:", client.exists("second"))
    while_busy("  incr()", lambda: client.incr("token"))
    print("    on the server:", client.get("token").decode())
END
"$python" "$scratch/run.py" "$redis" >"$scratch/said"

check "$scratch/said" <<'END'
as it comes
  acquire(): False
    owned: False
    key on the server: 1 for 600 s
  release(): LockNotOwnedError
    key on the server: 0
  incr(): 2
    on the server: 2
without retries
  acquire(): TimeoutError
    owned: False
    key on the server: 1 for 600 s
  release(): TimeoutError
    key on the server: 0
  incr(): TimeoutError
    on the server: 1
END
