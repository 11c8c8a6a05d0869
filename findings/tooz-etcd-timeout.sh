#!/bin/sh
# tooz on etcd: the timeout of acquire() is not how long it waits, but how long the lock is held.
#
# Expected: acquire(timeout=3) of a free lock takes it until release(); of a held one it says False after three seconds.
#   tooz documents it as "timeout to acquire a lock", and the Redis driver does so.
# Found: the lock is gone after three seconds, though the coordinator's heartbeat runs. Another program gets it, and
#   acquired still says True for the first. Of a held lock acquire() does not come back before it is free.
# Where: tooz 9.1.0, tooz/drivers/etcd3gw.py, Etcd3Lock.acquire(): timeout becomes the time to live of the lease. The
#   wait is bounded by the argument "blocking" alone. How often the heartbeat comes follows from the timeouts of the
#   coordinator, 30 s by default, and not from that of the lease.
# Why it matters: a program whose back end is changed from Redis to etcd by its URL, tooz's purpose, then runs two workers
#   at a time after the few seconds that it wanted to wait at most.

. "$(dirname "$0")/lib.sh"

install_python tooz==9.1.0 etcd3gw==2.7.0 redis==8.1.0
start_redis
install_debian etcd-server=3.4.23-4+b4 etcd-client=3.4.23-4+b4
port=$((20000 + $$ % 10000))
"$debian/usr/bin/etcd" --data-dir "$scratch/data" --listen-client-urls "http://127.0.0.1:$port" \
    --advertise-client-urls "http://127.0.0.1:$port" --listen-peer-urls "http://127.0.0.1:$((port + 1))" \
    --initial-advertise-peer-urls "http://127.0.0.1:$((port + 1))" \
    --initial-cluster "default=http://127.0.0.1:$((port + 1))" >"$scratch/etcd.log" 2>&1 &
servers="$servers $!"
export ETCDCTL_API=3 ETCDCTL_ENDPOINTS="127.0.0.1:$port"
wait_for "$debian/usr/bin/etcdctl" endpoint health
"$debian/usr/bin/etcdctl" version | head -n 1
redis_port=$((port + 2))
redis-cli -s "$redis" config set port "$redis_port" >"$scratch/log"

cat >"$scratch/run.py" <<'END'
import sys, threading, time
from tooz import coordination

for title, url in (("redis", f"redis://127.0.0.1:{sys.argv[2]}"),
                   ("etcd", f"etcd3+http://127.0.0.1:{sys.argv[1]}?api_version=v3")):
    print(title)
    a, b = (coordination.get_coordinator(url, member) for member in (b"a", b"b"))
    a.start(start_heart=True)
    b.start(start_heart=True)
    lock = a.get_lock(b"job")
    print("  acquire(timeout=3) by a:", lock.acquire(timeout=3))
    other = b.get_lock(b"job")
    waiter = threading.Thread(target=other.acquire, kwargs={"timeout": 3})
    waiter.start()
    time.sleep(10)
    print("  ten seconds later a has it, it says:", lock.acquired)
    print("  and acquire(timeout=3) by b got it:", other.acquired)
    print("  release by a:", lock.release())
    waiter.join()
    if other.acquired:
        other.release()
    a.stop()
    b.stop()
END
"$python" "$scratch/run.py" "$port" "$redis_port" >"$scratch/said"

check "$scratch/said" <<'END'
redis
  acquire(timeout=3) by a: True
  ten seconds later a has it, it says: True
  and acquire(timeout=3) by b got it: False
  release by a: True
etcd
  acquire(timeout=3) by a: True
  ten seconds later a has it, it says: True
  and acquire(timeout=3) by b got it: True
  release by a: False
END
