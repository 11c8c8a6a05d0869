#!/bin/sh
# etcd: the lock "jobs" waits for whoever holds "jobs/nightly", but not the other way round.
#
# Expected: locks of two names have nothing to do with each other. That "jobs/nightl" and "jobs/nightly" are apart
#   makes it look so.
# Found: a name with a slash is below the name before the slash, in one direction. While "jobs/nightly" is held, nobody
#   gets "jobs"; while "jobs" is held, anybody gets "jobs/nightly".
# Where: etcd 3.4.23, clientv3/concurrency/mutex.go. NewMutex() appends "/" to the name, and Lock() waits for each key
#   with that prefix that is older than its own. The keys of "jobs/nightly" have the prefix "jobs/".
# Why it matters: names are often made of paths. A program that holds "jobs/nightly" and then takes "jobs" waits for
#   itself, and one lock of a whole tree excludes some of its parts only, by who came first.

. "$(dirname "$0")/lib.sh"

install_debian etcd-server=3.4.23-4+b4 etcd-client=3.4.23-4+b4
port=$((20000 + $$ % 10000))
"$debian/usr/bin/etcd" --data-dir "$scratch/data" --listen-client-urls "http://127.0.0.1:$port" \
    --advertise-client-urls "http://127.0.0.1:$port" --listen-peer-urls "http://127.0.0.1:$((port + 1))" \
    --initial-advertise-peer-urls "http://127.0.0.1:$((port + 1))" \
    --initial-cluster "default=http://127.0.0.1:$((port + 1))" >"$scratch/etcd.log" 2>&1 &
servers="$servers $!"
export ETCDCTL_API=3 ETCDCTL_ENDPOINTS="127.0.0.1:$port"
etcdctl=$debian/usr/bin/etcdctl
wait_for "$etcdctl" endpoint health
"$etcdctl" version | head -n 1

# try NAME: takes the lock within three seconds, or says that it could not.
try()
{
    timeout --kill-after=1 3 "$etcdctl" lock "$1" echo "  $1: taken" 2>/dev/null || echo "  $1: not taken in 3 s"
}

# hold NAME TRIED...: tries these names while NAME is held.
hold()
{
    rm -f "$scratch/held"
    "$etcdctl" lock "$1" -- sh -c "touch '$scratch/held'; cat '$scratch/end' >'$scratch/rest'" &
    holder=$!
    wait_for test -e "$scratch/held"
    echo "$1 is held:"
    shift
    for name in "$@"; do try "$name"; done
    : >"$scratch/end"
    wait "$holder"
}

mkfifo "$scratch/end"
{
    hold jobs/nightly jobs jobs/nightl jobs/nightly/backup
    hold jobs jobs/nightly jobs/
} >"$scratch/said"

check "$scratch/said" <<'END'
jobs/nightly is held:
  jobs: not taken in 3 s
  jobs/nightl: taken
  jobs/nightly/backup: taken
jobs is held:
  jobs/nightly: taken
  jobs/: taken
END
