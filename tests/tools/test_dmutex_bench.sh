#!/bin/sh
# dmutex-bench: options, the JSON, and the counts in the JSON. Times are not asserted.

. "$srcdir/tests/lib/tap.sh"

bench=bench/dmutex-bench

# figure WORKLOAD WHEN NAME: its value, from the JSON with one figure a line.
figure()
{
    sed -n "/\"name\": \"$1\"/,/\]}\$/p" "$scratch/json" |
        sed -n "s/.*\"when\": \"$2\", \"name\": \"$3\",.*\"value\": \([-+.e0-9]*\),.*/\1/p"
}

# ---------------------------------------------------------------------------
# Options
# ---------------------------------------------------------------------------
$bench --list >"$scratch/list" || complain "--list: status $?"
for file in "$srcdir"/bench/workloads/*.c; do
    name=$(basename "$file" .c)
    grep -q "^$name " "$scratch/list" || complain "$name is not listed"
done
result "--list has each file of bench/workloads"

$bench no-such-workload >"$scratch/out" 2>&1
is "status of an unknown workload" $? 2
$bench --place nowhere >"$scratch/out" 2>&1
is "status of an unknown place" $? 2
$bench --rounds 0 >"$scratch/out" 2>&1
is "status of no rounds" $? 2
$bench --store nowhere >"$scratch/out" 2>&1
is "status of an unknown store" $? 2
result "an option or a word that has no meaning is refused"

# ---------------------------------------------------------------------------
# Figures
# ---------------------------------------------------------------------------
$bench --json --rounds 1 --seconds 0.01 uncontended recursive >"$scratch/json" 2>"$scratch/errors" ||
    complain "status $?: $(cat "$scratch/errors")"
result "two workloads run at all places of the machine"

# counted EXPECTED WORKLOAD WHEN [NAME]: complains unless that many scripts are called each time, or what NAME says; a
# few renewals are allowed.
counted()
{
    figure "$2" "$3" "${4-script calls}" >"$scratch/calls"
    awk -v least="$1" '$1 < least || $1 > least + 0.05 { wrong = 1 } END { exit wrong || NR == 0 }' "$scratch/calls" ||
        complain "$2, $3: ${4-script calls}: $(xargs <"$scratch/calls"), and not $1"
}
counted 2 uncontended "unix socket"
counted 2 uncontended TCP
counted 0 recursive held
counted 1 recursive "held elsewhere"
result "the scripts of a pair, a relock and a trylock are counted"

# handoffs_are_timed OPTION...: on a busy machine a short time may pass without a handoff.
handoffs_are_timed()
{
    for seconds in 0.1 1 10; do
        $bench --json --rounds 1 --seconds $seconds "$@" handoff >"$scratch/json" 2>"$scratch/errors"
        figure handoff "2 processes" "handoff p50" >"$scratch/p50"
        grep -qx 0 "$scratch/p50" || break
    done
    awk '$1 <= 0 { wrong = 1 } END { exit wrong || NR == 0 }' "$scratch/p50" ||
        complain "no handoff: $(xargs <"$scratch/p50") $(tail -n 1 "$scratch/errors")"
}
handoffs_are_timed
result "handoffs are timed"

for member in machine versions date command rounds seconds workloads; do
    grep -q "\"$member\": " "$scratch/json" || complain "no $member"
done
if command -v python3 >/dev/null; then
    python3 -c 'import json, sys; json.load(sys.stdin)' <"$scratch/json" 2>"$scratch/errors" ||
        complain "not JSON: $(tail -n 1 "$scratch/errors")"
fi
result "the JSON has the machine, the versions and the date"

# ---------------------------------------------------------------------------
# PostgreSQL
# ---------------------------------------------------------------------------
if $bench --store postgres --list >"$scratch/list" 2>&1 &&
    { command -v initdb || ls /usr/lib/postgresql/*/bin/initdb; } >"$scratch/out" 2>&1; then
    $bench --store postgres tls >"$scratch/out" 2>&1
    is "status of a workload for Redis alone" $? 2
    $bench --store postgres --json --rounds 1 --seconds 0.01 --place anywhere uncontended >"$scratch/json" \
        2>"$scratch/errors" || complain "status $?: $(cat "$scratch/errors")"
    counted 2 uncontended "unix socket" "writing transactions"
    grep -q '"store": "postgres"' "$scratch/json" || complain "no store in the JSON"
    grep -q '"server": "PostgreSQL [0-9]' "$scratch/json" || complain "no version of the server"
    result "a pair on PostgreSQL is two transactions"
    handoffs_are_timed --store postgres-async --place anywhere
    result "handoffs on PostgreSQL are timed"
fi

# ---------------------------------------------------------------------------
# etcd
# ---------------------------------------------------------------------------
if command -v etcd >"$scratch/out"; then
    $bench --store etcd heap >"$scratch/out" 2>&1
    is "status of a workload for PostgreSQL alone" $? 2
    $bench --store etcd --json --rounds 1 --seconds 0.01 --place anywhere uncontended >"$scratch/json" \
        2>"$scratch/errors" || complain "status $?: $(cat "$scratch/errors")"
    counted 2 uncontended TCP "entries of the log"
    grep -q '"server": "etcd [0-9]' "$scratch/json" || complain "no version of the server"
    result "a pair on etcd is two entries of the log"
fi

finish
