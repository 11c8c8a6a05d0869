#!/bin/sh
# fakeredis: clients that wait in BLPOP are served in no order; redis-server serves the longest waiting first.
#
# Expected: the first client that blocks on a list gets the first element. redis-server promises it, and fair locks
#   and semaphores (a list of permits) are built on it.
# Found: of eight clients that begin to wait one after the other, fakeredis wakes all at each push and the fastest
#   thread takes the element.
# Where: fakeredis 2.40.0, fakeredis/_socket/_base.py, _blocking(): each waiter waits on the condition variable of the
#   database and looks again. There is no queue per key.
# Why it matters: a test of fairness fails on the fake for no fault of the lock, and a lock that starves its oldest
#   waiter passes there as often as a fair one.

. "$(dirname "$0")/lib.sh"

install_python fakeredis==2.40.0 redis==8.1.0
start_redis

cat >"$scratch/run.py" <<'END'
import sys, threading, time
import fakeredis, redis

WAITERS, ROUNDS = 8, 6
server = fakeredis.FakeServer()

def order(connect, is_waiting):
    served, threads = [], []
    for number in range(WAITERS):
        client = connect()
        client.ping()
        def wait(client=client, number=number):
            client.blpop("permits", 0)
            served.append(number)
        threads.append(threading.Thread(target=wait))
        threads[-1].start()
        is_waiting(number + 1)
    pusher = connect()
    for number in range(WAITERS):
        pusher.rpush("permits", "permit")
        while len(served) <= number:
            time.sleep(0.005)
    for thread in threads:
        thread.join()
    return served

def blocked(number):
    client = redis.Redis(unix_socket_path=sys.argv[1])
    while client.info("clients")["blocked_clients"] < number:
        time.sleep(0.005)

for title, connect, is_waiting in (
        ("redis-server", lambda: redis.Redis(unix_socket_path=sys.argv[1]), blocked),
        ("fakeredis", lambda: fakeredis.FakeRedis(server=server), lambda number: time.sleep(0.1))):
    rounds = [order(connect, is_waiting) for _ in range(ROUNDS)]
    print(title, "for example", rounds[0], file=sys.stderr)
    print(f"{title}: always in order of arrival:", all(served == sorted(served) for served in rounds))
END
"$python" "$scratch/run.py" "$redis" >"$scratch/said"

check "$scratch/said" <<'END'
redis-server: always in order of arrival: True
fakeredis: always in order of arrival: False
END
