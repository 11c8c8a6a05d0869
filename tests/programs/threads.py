# A Python program with threads, processes and files: prints sums.
import concurrent.futures
import fcntl
import hashlib
import queue
import sqlite3
import subprocess
import sys
import tempfile
import threading

work = queue.Queue()
done = threading.Condition()
total = 0


def take():
    global total
    while (number := work.get()) is not None:
        with done:
            total += number
            done.notify()


threads = [threading.Thread(target=take) for _ in range(8)]
for thread in threads:
    thread.start()
for number in range(20000):
    work.put(number)
with done:
    done.wait_for(lambda: total == sum(range(20000)), 60)
for thread in threads:
    work.put(None)
for thread in threads:
    thread.join()
print("threads", total)

with concurrent.futures.ProcessPoolExecutor(2) as pool:
    print("processes", sum(pool.map(int.bit_length, range(2000), chunksize=50)))

with tempfile.NamedTemporaryFile() as file:
    for lock in fcntl.flock, fcntl.lockf:
        lock(file, fcntl.LOCK_EX)
        lock(file, fcntl.LOCK_UN)
    database = sqlite3.connect(file.name)
    database.execute("create table t (n)")
    with database:
        database.executemany("insert into t values (?)", ((n,) for n in range(1000)))
    print("sqlite", database.execute("select sum(n) from t").fetchone()[0])

print("hash", hashlib.sha256(b"x" * 10**7).hexdigest())
print("child", subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, check=True).stdout)
with open("/proc/self/maps") as maps:
    print("preloaded", sorted({line.split("/")[-1].strip() for line in maps if "jemalloc" in line}))
