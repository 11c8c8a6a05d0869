# SPDX-License-Identifier: BSD-2-Clause
"""The adapter of bench/peers for redis-py's Lock. README.md in the folder above has the commands and answers."""
import importlib.metadata
import os
import sys
import threading
import time

import redis

LEASE_MS = 10000


def connect():
    return redis.Redis(host="127.0.0.1", port=int(os.environ["BENCH_PORT"]))


def make_lock(name, lease_ms=LEASE_MS):
    return connect().lock(name, timeout=lease_ms / 1000)


def say(text):
    print(text, flush=True)


def say_ready_and_await_go():
    say("ready")
    if not sys.stdin.readline():
        sys.exit(1)


def pair(seconds):
    lock = make_lock("pair")
    say("ready")
    while sys.stdin.readline():
        pairs = 0
        start = time.monotonic()
        while time.monotonic() - start < float(seconds):
            lock.acquire()
            lock.release()
            pairs += 1
        say(f"{pairs} {time.monotonic() - start:.6f}")


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
    {"pair": pair, "contend": contend, "hold": hold, "wait": wait, "idle": idle, "version": version}[sys.argv[2]](
        *sys.argv[3:]
    )
