# SPDX-License-Identifier: BSD-2-Clause
"""The results as a page in Markdown: tables of figures, and of ratios to the library."""
import statistics
import textwrap


def median(rounds, workload, field):
    """Over the rounds that have the figure, or None."""
    values = [one[workload][field] for one in rounds if field in one.get(workload, {})]
    return statistics.median(values) if values else None


def number(value):
    if value is None:
        return "–"
    if abs(value) >= 100:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def ratio(value, base):
    return "–" if value is None or not base else number(value / base)


def table(head, rows):
    """Nothing without rows."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *lines]) if lines else ""


def section(title, *paragraphs):
    """Nothing without a figure, which the last paragraph has."""
    return "\n\n".join([f"## {title}", *paragraphs, ""]) if paragraphs[-1] else ""


THREADS = """\
Each thread locks and unlocks an own name, without rivals: threads, goroutines, tasks or promises, as
users of the package have them, with one client for all where the package has a client. The bare loops have a connection
each. Threads that share a connection have several *commands* in one request; commands are counted in a turn of their
own."""
HANDOVER = """\
An *acquisition* after another client's is a *handover*. A lock that its last holder takes again at once has many
acquisitions and few handovers, while the other clients wait."""
WAITING = """\
*Takeover*: a holder is killed by SIGKILL just after the lock, with a lease of 2 s; seconds from the end of that
lease until a waiter has the lock. The lease is counted from the moment at which the holder's word arrives, so a few
hundredths less than 0 are possible. *Requests* of 100 waiters, threads of 4 processes, and of the holder, while nothing
happens."""


TEXTS = {
    "redis": ("libdmutex compared with other locks", "by TCP over the loopback interface",
              "A *request* is one read of the server from a client. Requests of ZooKeeper and etcd are not counted."),
    "postgres": ("libdmutex compared with other locks on PostgreSQL", "by a unix socket",
                 """\
A *request* is one transaction of the server, with those of connecting, and those in which a session reads a notice:
the server wakes each session that listens. In turns that are shorter than the server's counters are late, requests are
not counted.

pg_advisory_lock and session locks have no lease: the server gives them back when it sees that the connection has ended,
and a holder that is cut off goes on and does not know. They write nothing, and have no token."""),
}


class Page:
    def __init__(self, result):
        self.result = result
        self.rounds = {name: lock["rounds"] for name, lock in result["locks"].items()}
        self.base = self.rounds.get("libdmutex", [])

    def rows(self, make):
        """A row for each lock that has at least one of the figures that make() puts into it."""
        for name, rounds in self.rounds.items():
            row = make(rounds)
            if any(word != "–" for word in row):
                yield [name, *row]

    def pair(self):
        def row(rounds):
            us = median(rounds, "pair", "us")
            return [number(us), ratio(us, median(self.base, "pair", "us")), self.requests(rounds, "pair")]

        return table(["", "us", "x libdmutex", "requests"], self.rows(row))

    def pairs(self):
        def row(rounds):
            pairs = median(rounds, "pairs", "pairs")
            return [number(pairs), ratio(pairs, median(self.base, "pairs", "pairs")),
                    number(median(rounds, "pairs", "commands")), self.requests(rounds, "pairs")]

        return table(["", "pairs/s", "x libdmutex", "commands each", "requests each"], self.rows(row))

    @staticmethod
    def requests(rounds, workload):
        value = median(rounds, workload, "requests")
        return "0" if value == 0 else number(value)

    @staticmethod
    def shares(rounds, workload):
        most, least = median(rounds, workload, "luckiest"), median(rounds, workload, "unluckiest")
        return "–" if most is None else f"{most * 100:.1f} : {least * 100:.1f}"

    def contention(self, workload):
        def row(rounds):
            cells = []
            for field in "acquired", "handovers":
                value = median(rounds, workload, field)
                cells += [number(value), ratio(value, median(self.base, workload, field))]
            return cells + [self.requests(rounds, workload), self.shares(rounds, workload)]

        return table(["", "acquisitions/s", "x libdmutex", "handovers/s", "x libdmutex", "requests each",
                      "luckiest : unluckiest, % of all"], self.rows(row))

    def waiting(self):
        def row(rounds):
            return [number(median(rounds, "takeover", "beyond")), self.requests(rounds, "idle")]

        return table(["", "takeover, s", "requests/s of 100 waiters"], self.rows(row))

    def versions(self):
        locks = self.result["locks"]
        return table(["", "version"], ([name, locks[name]["version"] or "–"] for name in locks))

    def missing(self):
        lines = []
        for name, lock in self.result["locks"].items():
            lines += [f"* {name}: {why}." for why in lock["missing"]]
        return "\n".join(lines) or "Nothing."

    def origin(self):
        result, machine = self.result, self.result["machine"]
        return textwrap.fill(
            f'Made on {result["date"]} by `{result["command"]}`: one run, in which all locks take turns; medians of '
            f'{result["count"]} rounds of {result["seconds"]:g} s; one round for the section "Waiting", and for a '
            f'figure that takes longer than 30 s. {machine["cores"]} cores, {machine["processor"]}, '
            f'Linux {machine["kernel"]}, {result["server"]}; load before the run: {machine["load"]:.2f}. '
            "Absolute figures move from machine to machine: compare within a "
            f"column.{self.warning()}", 120)

    def warning(self):
        """Times of a busy machine are the scheduler's."""
        if self.result["machine"]["load"] < self.result["machine"]["cores"] / 2:
            return ""
        return (" The machine had other work: the order of neighbours by time or rate may be chance; requests, shares "
                "and the part of handovers in acquisitions are counts.")

    def sections(self):
        """All that have a figure."""
        crowd, threads = self.result["crowd"], self.result.get("threads")
        return "".join([
            section("A lock and unlock that nobody else wants", self.pair()),
            section(f"{threads} threads of one process, {threads} names", THREADS, self.pairs()),
            section("Two clients that lock and unlock one name", HANDOVER, self.contention("contend 2")),
            section(f"{crowd} clients on one name", self.contention(f"contend {crowd}")),
            section("Waiting", WAITING, self.waiting()),
        ])

    def text(self):
        title, way, request = TEXTS["redis" if self.result["store"] == "redis" else "postgres"]
        return f"""# {title}

{self.origin()}

All clients are processes on the machine of the server, {way}, placed by the kernel; all
locks have the defaults of their package, but endless tries, and a lease of 10 s. `bench/peers/README.md` says how each
is driven.

{request}

{self.sections()}## Versions

{self.versions()}

## Left out

{self.missing()}
"""
