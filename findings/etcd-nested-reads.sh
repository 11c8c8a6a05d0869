#!/bin/sh
# etcd: a transaction that only reads is written to the log of all members if the read is in a nested transaction.
#
# Expected: reads are answered by one member after it has confirmed how far the log is, and write nothing: so do ranges, and
#   transactions of ranges.  Where the ranges stand, in the transaction or in one inside it, makes no difference.
# Found: ten such reads are ten entries of the log, each of which a majority of the members writes to its disk before the answer
#   comes.  The revision does not change, so nobody who watches revisions or keys sees anything.
# Where: etcd 3.4.23, by the JSON gateway.  Only the operations of the outermost transaction are looked at.
# Why it matters: nested transactions are the way to ask for several conditional reads in one round trip, for example by many who
#   look whether their locks have changed.  They cost as much as writes, and wear the disks of an idle cluster.

. "$(dirname "$0")/lib.sh"

need curl
install_debian etcd-server=3.4.23-4+b4
port=$((20000 + $$ % 10000))
"$debian/usr/bin/etcd" --data-dir "$scratch/data" --listen-client-urls "http://127.0.0.1:$port" \
    --advertise-client-urls "http://127.0.0.1:$port" --listen-peer-urls "http://127.0.0.1:$((port + 1))" \
    --initial-advertise-peer-urls "http://127.0.0.1:$((port + 1))" \
    --initial-cluster "default=http://127.0.0.1:$((port + 1))" >"$scratch/etcd.log" 2>&1 &
servers="$servers $!"
wait_for curl -fsS "http://127.0.0.1:$port/health"

ask()
{
    curl -fsS -d "$2" "http://127.0.0.1:$port/v3/$1"
}

# number NAME: of the member's status.
number()
{
    ask maintenance/status '{}' | sed "s/.*\"$1\":\"\([0-9]*\)\".*/\1/"
}

# ten WHAT PATH BODY: asks ten times, and prints how many entries and revisions that makes.
ten()
{
    entries=$(number raftIndex) revision=$(number revision) i=0
    while [ $i -lt 10 ]; do
        ask "$2" "$3" >"$scratch/answer"
        i=$((i + 1))
    done
    grep -q '"value":"eA=="' "$scratch/answer" && value=read || value="not read"
    echo "$1 $(($(number raftIndex) - entries)) entries, $(($(number revision) - revision)) revisions, the value is $value"
}

range='{"request_range":{"key":"bG9jaw=="}}'
ask kv/put '{"key":"bG9jaw==","value":"eA=="}' >"$scratch/answer"
{
    ten "10 ranges:                                        " kv/range '{"key":"bG9jaw=="}'
    ten "10 transactions with a range:                     " kv/txn "{\"success\":[$range]}"
    ten "10 transactions with a transaction with the range:" kv/txn "{\"success\":[{\"request_txn\":{\"success\":[$range]}}]}"
} >"$scratch/said"

check "$scratch/said" <<'END'
10 ranges:                                         0 entries, 0 revisions, the value is read
10 transactions with a range:                      0 entries, 0 revisions, the value is read
10 transactions with a transaction with the range: 10 entries, 0 revisions, the value is read
END
