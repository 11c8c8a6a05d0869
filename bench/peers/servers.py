# SPDX-License-Identifier: BSD-2-Clause
"""Private servers, on ports of the loopback interface or in a temporary directory; what Redis and PostgreSQL count."""
import ctypes
import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time


PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)


def end_with_parent():
    """Between fork and exec: the process ends with this program, however this program ends."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def end_cleanly_with_parent():
    """The same, for PostgreSQL: it ends at once, and takes its processes and shared memory with it."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_port(port, process):
    """Waits until the port is open."""
    for _ in range(600):
        if process.poll() is not None:
            raise RuntimeError(f"{process.args[0]} has ended")
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"{process.args[0]} does not answer")


def postgres_program(name):
    """In PATH, or else the newest of Debian's, which are not."""
    found = glob.glob(f"/usr/lib/postgresql/*/bin/{name}")
    return shutil.which(name) or max(found, key=lambda path: int(path.split("/")[4]), default=None)


def postgres_user():
    """What Popen needs: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    names = [entry.pw_name for entry in pwd.getpwall()]
    user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


class Postgres:
    """Asks the server by psql."""

    is_late = True  # sessions count what they did when they end, at the latest

    def __init__(self, folder):
        self.folder = folder

    def ask(self, sql):
        answer = subprocess.run(["psql", "-XAtq", "-h", self.folder, "-U", "postgres", "-d", "template1", "-c", sql],
                                check=True, capture_output=True, text=True)
        return answer.stdout.strip()

    def requests(self):
        """Transactions: each statement is one, unless a client begins one."""
        return int(self.ask("SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = 'postgres'"))

    def requests_of_all(self):
        """When all clients have gone."""
        while self.ask("SELECT count(*) FROM pg_stat_activity WHERE datname = 'postgres'") != "0":
            time.sleep(0.02)
        return self.requests()

    def clear(self):
        """Nothing: no row is in the way of other names."""


class Redis:
    """A connection that sends a command and reads the reply."""

    is_late = False

    def __init__(self, port):
        self.port = port
        self.stream = socket.create_connection(("127.0.0.1", port)).makefile("rwb", buffering=1 << 16)

    def ask(self, *words):
        self.stream.write(b"*%d\r\n" % len(words))
        for word in words:
            self.stream.write(b"$%d\r\n%s\r\n" % (len(word), word.encode()))
        self.stream.flush()
        line = self.stream.readline().decode().strip()
        if line[0] == "-":
            raise RuntimeError(line)
        if line[0] != "$":
            return line[1:]
        text = self.stream.read(int(line[1:]) + 2)
        return text.decode()

    def info(self, field):
        for line in self.ask("INFO", "everything").splitlines():
            if line.startswith(field + ":"):
                return line.partition(":")[2]
        return ""

    def clear(self):
        self.ask("FLUSHALL")

    def requests(self):
        """How often the server has read from a client: once for each request of a client that waits for the reply."""
        return int(self.info("total_reads_processed"))

    def commands_during(self, work):
        """The commands that clients send meanwhile, without those that scripts call; and the result of work()."""
        monitor = Redis(self.port)
        monitor.ask("MONITOR")
        result = work()
        self.ask("ECHO", "end of work")
        commands = 0
        for line in monitor.stream:
            if b'"end of work"' in line:
                break
            commands += b" lua] " not in line
        monitor.stream.close()
        return commands, result


class Servers:
    """All servers of a run; stop() ends them and removes their directory."""

    def __init__(self, peers, store):
        self.directory = tempfile.mkdtemp(prefix="dmutex-peers-")
        self.processes = []
        self.environment = dict(os.environ, BENCH_STORE=store)
        self.missing = {}
        if store != "redis":
            self.store = self.start_postgres(store)
            self.version = "PostgreSQL " + self.store.ask("SHOW server_version")
            return
        self.store = Redis(self.start_redis())
        self.version = "Redis " + (self.store.info("valkey_version") or self.store.info("redis_version"))
        self.start_if_possible("etcd", self.start_etcd)
        self.start_if_possible("zookeeper", lambda: self.start_zookeeper(os.path.join(peers, "java", "zookeeper")))

    def start_if_possible(self, name, start):
        try:
            start()
        except (OSError, RuntimeError) as error:
            self.missing[name] = str(error)

    def start(self, *words, **options):
        log = open(os.path.join(self.directory, os.path.basename(words[0]) + ".log"), "wb")
        options.setdefault("preexec_fn", end_with_parent)
        process = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.directory,
                                   **options)
        self.processes.append(process)
        return process

    def start_redis(self):
        port = free_port()
        program = os.environ.get("DMUTEX_TEST_SERVER") or "redis-server"
        process = self.start(program, "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no",
                             "--maxclients", "8000", "--dir", self.directory)
        await_port(port, process)
        self.environment["BENCH_PORT"] = str(port)
        return port

    def start_postgres(self, store):
        """With commits that wait for the disk, or not."""
        programs, user = [postgres_program(name) for name in ("initdb", "postgres")], postgres_user()
        if None in programs:
            raise SystemExit("compare: PostgreSQL is not installed")
        if user:
            os.chown(self.directory, user["user"], user["group"])
        data = os.path.join(self.directory, "data")
        if self.start(programs[0], "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-locale",
                      **user).wait():
            raise SystemExit("compare: initdb has failed")
        server = self.start(programs[1], "-D", data, "-c", "listen_addresses=", "-c",
                            f"unix_socket_directories={self.directory}", "-c", "max_connections=600", "-c",
                            f"synchronous_commit={'off' if store.endswith('-async') else 'on'}",
                            preexec_fn=end_cleanly_with_parent, **user)
        self.environment["BENCH_FOLDER"] = self.directory
        postgres = Postgres(self.directory)
        while True:
            try:
                postgres.ask("SELECT 1")
                return postgres
            except subprocess.CalledProcessError:
                if server.poll() is not None:
                    raise SystemExit("compare: PostgreSQL does not start")
                time.sleep(0.05)

    def start_etcd(self):
        if not shutil.which("etcd"):
            raise RuntimeError("no server: etcd is not installed")
        port, peer_port = free_port(), free_port()
        url, peer_url = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
        process = self.start("etcd", "--data-dir", os.path.join(self.directory, "etcd"), "--listen-client-urls", url,
                             "--advertise-client-urls", url, "--listen-peer-urls", peer_url,
                             "--initial-advertise-peer-urls", peer_url, "--initial-cluster", f"default={peer_url}")
        await_port(port, process)
        self.environment["BENCH_ETCD"] = str(port)

    def start_zookeeper(self, program):
        if not os.path.exists(program):
            raise RuntimeError("no server: java is not built")
        port = free_port()
        path = os.path.join(self.directory, "zoo.cfg")
        with open(path, "w") as file:
            file.write(f"tickTime=500\nclientPort={port}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n"
                       f"dataDir={self.directory}/zookeeper\nmaxClientCnxns=0\n")
        await_port(port, self.start(program, path))
        self.environment["BENCH_ZOOKEEPER"] = str(port)

    def stop(self):
        for process in self.processes:
            process.send_signal(signal.SIGQUIT if "postgres" in process.args[0] else signal.SIGKILL)
            process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)
