# SPDX-License-Identifier: BSD-2-Clause
"""The adapter of bench/peers for redis-py's Lock. README.md in the folder above has the commands and answers."""
import importlib.metadata
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import redis

LEASE_MS = 10000


def connect():
    return redis.Redis(host="127.0.0.1", port=int(os.environ["BENCH_PORT"]))


def make_lock(name, lease_ms=LEASE_MS, client=None):
    return (client or connect()).lock(name, timeout=lease_ms / 1000)


def say(text):
    print(text, flush=True)


def say_ready_and_await_go():
    say("ready")
    if not sys.stdin.readline():
        sys.exit(1)


def pairs_until(lock, end):
    count = 0
    while time.monotonic() < end:
        lock.acquire()
        lock.release()
        count += 1
    return count


def pair(seconds):
    lock = make_lock("pair")
    say("ready")
    while sys.stdin.readline():
        start = time.monotonic()
        count = pairs_until(lock, start + float(seconds))
        say(f"{count} {time.monotonic() - start:.6f}")


def pairs(seconds, count):
    client = connect()  # one for all threads; its pool has a connection for each
    locks = [make_lock(f"pairs-{i}", client=client) for i in range(int(count))]
    with ThreadPoolExecutor(len(locks)) as pool:
        say("ready")
        while sys.stdin.readline():
            start = time.monotonic()
            ends = [start + float(seconds)] * len(locks)
            total = sum(pool.map(pairs_until, locks, ends))
            say(f"{total} {time.monotonic() - start:.6f}")


def contend(seconds, name, path, number):
    lock = make_lock(name)
    file = os.open(path, os.O_RDWR)
    own = bytes([int(number)])
    acquired = handovers = 0
    lock.acquire()
    lock.release()
    say_ready_and_await_go()
    end = time.monotonic() + float(seconds)
    while True:
        lock.acquire()
        if time.monotonic() >= end:
            break
        if os.pread(file, 1, 0) != own:
            os.pwrite(file, own, 0)
            handovers += 1
        lock.release()
        acquired += 1
    lock.release()
    say(f"{acquired} {handovers}")


def hold(name, lease_ms):
    make_lock(name, int(lease_ms)).acquire()
    say("held")
    while True:
        time.sleep(1000)


def wait(name, lease_ms):
    lock = make_lock(name, int(lease_ms))
    lock.redis.ping()
    say_ready_and_await_go()
    lock.acquire()
    say("got")


def idle(name, lease_ms, count):
    for _ in range(int(count)):
        lock = make_lock(name, int(lease_ms))
        threading.Thread(target=lock.acquire, daemon=True).start()
    say_ready_and_await_go()
    os._exit(0)


def version():
    say("redis-py " + importlib.metadata.version("redis"))


if __name__ == "__main__":
    commands = pair, pairs, contend, hold, wait, idle, version
    {command.__name__: command for command in commands}[sys.argv[2]](*sys.argv[3:])
