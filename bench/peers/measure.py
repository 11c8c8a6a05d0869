# SPDX-License-Identifier: BSD-2-Clause
"""The workloads, each with adapters of one lock. A figure is a dictionary; an adapter that fails raises Failed."""
import os
import select
import signal
import subprocess
import time

import servers

LEASE_MS = 2000
IDLE_WAITERS = 100
IDLE_PROCESSES = 4
TURNS = 10  # in a round, of pairs without contention: short, so that other work of the machine hits all alike
THREADS = 8  # or tasks, each with a name of its own
PATIENCE = 120  # seconds until an adapter that says nothing has failed
UNSUPPORTED = 77


class Failed(Exception):
    pass


class Unsupported(Exception):
    pass


class Adapter:
    """A running adapter. close() ends it."""

    def __init__(self, peer, environment, *words):
        self.peer = peer
        self.process = subprocess.Popen([peer.program, peer.variant, *[str(word) for word in words]],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=environment, preexec_fn=servers.end_with_parent)
        os.set_blocking(self.process.stderr.fileno(), False)

    def read(self, patience=PATIENCE):
        """The next line of the adapter."""
        if not select.select([self.process.stdout], [], [], patience)[0]:
            raise Failed(f"a client had no answer for {patience} s")
        line = self.process.stdout.readline().decode().strip()
        if line:
            return line
        if self.process.wait() == UNSUPPORTED:
            raise Unsupported()
        error = (self.process.stderr.read() or b"").decode().strip().splitlines()
        raise Failed(error[-1] if error else f"ended with {self.process.returncode}")

    def expect(self, word):
        line = self.read()
        if line != word:
            raise Failed(f"said {line!r}, not {word!r}")

    def go(self):
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)

    def close(self):
        if self.process.poll() is None:
            self.kill()
        self.process.wait()
        for stream in self.process.stdin, self.process.stdout, self.process.stderr:
            try:
                stream.close()
            except BrokenPipeError:
                pass


class Workloads:
    def __init__(self, servers, seconds):
        self.servers = servers
        self.seconds = seconds
        self.turn = seconds / TURNS
        self.holder = os.path.join(servers.directory, "holder")
        self.names = 0

    def start(self, peer, *words):
        return Adapter(peer, self.servers.environment, *words)

    def new_name(self):
        self.names += 1
        return f"name-{self.names}"

    def requests_since(self, before):
        """Without the one of this program's own, which PostgreSQL does not count."""
        return self.servers.store.requests() - before - (not self.servers.store.is_late)

    def version(self, peer):
        adapter = self.start(peer, "version")
        try:
            return adapter.read()
        finally:
            adapter.close()

    @staticmethod
    def take_turn(adapter):
        """Pairs and seconds. A turn in which the lock's threads did not get a processor is taken again."""
        end = time.monotonic() + PATIENCE
        while True:
            adapter.go()
            pairs, seconds = adapter.read().split()
            if int(pairs) > 0:
                return int(pairs), float(seconds)
            if time.monotonic() > end:
                raise Failed(f"no pair in {PATIENCE} s")

    def start_turns(self, peer, *words):
        """An adapter that has run for a turn already, uncounted."""
        adapter = self.start(peer, *words)
        try:
            adapter.expect("ready")
            self.take_turn(adapter)
            return adapter
        except BaseException:
            adapter.close()
            raise

    def counted_turn(self, adapter):
        """Requests for each pair, and the turn.  A turn is shorter than PostgreSQL's counters are late."""
        if self.servers.store.is_late:
            return {}, self.take_turn(adapter)
        before = self.servers.store.requests()
        turn = self.take_turn(adapter)
        return {"requests": self.requests_since(before) / turn[0]}, turn

    def start_pair(self, peer):
        return self.start_turns(peer, "pair", self.turn)

    def pair(self, adapter):
        """One turn."""
        figures, (pairs, seconds) = self.counted_turn(adapter)
        return {"us": seconds / pairs * 1e6, **figures}

    def start_pairs(self, peer):
        """Also counts commands, in a turn that is not timed: MONITOR slows the server down."""
        adapter = self.start_turns(peer, "pairs", self.turn, THREADS)
        adapter.commands = {}
        if not self.servers.store.is_late:
            commands, (pairs, _) = self.servers.store.commands_during(lambda: self.take_turn(adapter))
            adapter.commands = {"commands": commands / pairs}
        return adapter

    def pairs(self, adapter):
        """One turn of all threads."""
        figures, (pairs, seconds) = self.counted_turn(adapter)
        return {"pairs": pairs / seconds, **adapter.commands, **figures}

    def contend(self, peer, size):
        """Clients, each a process, that lock and unlock one name for some seconds."""
        name = self.new_name()
        with open(self.holder, "wb") as file:
            file.write(b"\0")
        before_all = self.servers.store.requests()
        adapters = [self.start(peer, "contend", self.seconds, name, self.holder, i + 1) for i in range(size)]
        try:
            for adapter in adapters:
                adapter.expect("ready")
            before = self.servers.store.requests()
            for adapter in adapters:
                adapter.go()
            time.sleep(self.seconds)
            requests = self.requests_since(before)
            counts = [[int(word) for word in adapter.read().split()] for adapter in adapters]
        finally:
            for adapter in adapters:
                adapter.close()
        if self.servers.store.is_late:
            requests = self.servers.store.requests_of_all() - before_all
        acquired = [count[0] for count in counts]
        return {
            "acquired": sum(acquired) / self.seconds,
            "handovers": sum(count[1] for count in counts) / self.seconds,
            "requests": requests / max(sum(acquired), 1),
            "luckiest": max(acquired) / max(sum(acquired), 1),
            "unluckiest": min(acquired) / max(sum(acquired), 1),
        }

    def takeover(self, peer):
        """Seconds from the end of a killed holder's lease until another has the lock."""
        name = self.new_name()
        waiter = self.start(peer, "wait", name, LEASE_MS)
        adapters = [waiter]
        try:
            waiter.expect("ready")
            holder = self.start(peer, "hold", name, LEASE_MS)
            adapters.append(holder)
            holder.expect("held")
            start = time.monotonic()
            holder.kill()
            waiter.go()
            waiter.expect("got")
            return {"beyond": time.monotonic() - start - LEASE_MS / 1000}
        finally:
            for adapter in adapters:
                adapter.close()

    def idle(self, peer):
        """Requests a second of waiters that only wait, and of their one holder."""
        name = self.new_name()
        adapters = [self.start(peer, "hold", name, 60000)]
        try:
            adapters[0].expect("held")
            for _ in range(IDLE_PROCESSES):
                adapters.append(self.start(peer, "idle", name, 60000, IDLE_WAITERS // IDLE_PROCESSES))
            for adapter in adapters[1:]:
                adapter.expect("ready")
            time.sleep(2)  # all have begun to wait
            before = self.servers.store.requests()
            time.sleep(3)
            return {"requests": self.requests_since(before) / 3}
        finally:
            for adapter in adapters:
                adapter.close()
