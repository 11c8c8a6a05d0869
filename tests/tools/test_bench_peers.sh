#!/bin/sh
# bench/peers/compare with the locks of bench/peers/c: the counts in the figures, and the page. Times are not asserted.

. "$srcdir/tests/lib/tap.sh"
. "$srcdir/tests/lib/server.sh"

command -v python3 >/dev/null || { echo "1..0 # SKIP python3 is not installed" && exit 0; }
peers=$scratch/peers
mkdir -p "$peers/python"

compare()
{
    BUILD=$PWD DMUTEX_PEERS=$peers DMUTEX_TEST_SERVER=$server "$srcdir/bench/peers/compare" --rounds 1 "$@"
}

# An adapter that fails in its second measured turn, after a first turn and a turn that counts commands.
cat >"$peers/python/adapter" <<'EOF'
#!/bin/sh
case $2 in
version) echo "adapter 1" ;;
pairs)
    echo ready
    for turn in first counted measured; do
        read -r go && [ "$4" = 8 ] && echo "8 0.01"
    done
    read -r go
    echo "the lock has gone" >&2
    exit 3
    ;;
*) exit 77 ;;
esac
EOF
chmod +x "$peers/python/adapter"

compare --only no-such-workload >"$scratch/out" 2>&1
is "status of an unknown workload" $? 2
result "a workload that has no meaning is refused"

compare --seconds 0.5 --only pair --only pairs --json "$scratch/json" c python >"$scratch/page" 2>"$scratch/errors" ||
    complain "status $?: $(tail -n 1 "$scratch/errors")"
result "locks are measured with two of the workloads"

# One line for each figure of each turn: LOCK|WORKLOAD|FIELD|VALUE
list_figures()
{
    python3 - "$scratch/json" >"$scratch/figures" <<'EOF'
import json, sys

with open(sys.argv[1]) as file:
    for name, lock in json.load(file)["locks"].items():
        for turn in lock["rounds"]:
            for workload, figures in turn.items():
                for field, value in figures.items():
                    print(name, workload, field, value, sep="|")
EOF
}
list_figures

# median LOCK WORKLOAD FIELD LEAST MOST: complains unless the median of the turns is in these limits.  There are ten, or
# fewer of a lock whose turns take long on this machine.
median()
{
    grep -F "$1|$2|$3|" "$scratch/figures" | cut -d'|' -f4 | sort -g >"$scratch/values"
    awk -v least="$4" -v most="$5" '{ value[NR] = $1 }
        END { median = value[int((NR + 1) / 2)]; exit NR == 0 || median < least || median > most }' "$scratch/values" || complain "$1, $2: $3 not in $4 to $5: $(xargs <"$scratch/values")"
}

# A turn may end before the server has read the last releases of the library, and a heartbeat may be counted.
for workload in pair pairs; do
    for lock in "bare SET NX PX, each ms" "two classic scripts"; do
        median "$lock" $workload requests 2 2.4
    done
    median "libdmutex, linger 1 s" $workload requests 0 0.4
done
median libdmutex pair requests 1.6 2.4
result "the requests of a pair are counted"

median "bare SET NX PX, each ms" pairs commands 2 2.4
median libdmutex pairs commands 1.6 2.4
median "libdmutex, linger 1 s" pairs commands 0 0.4
for lock in libdmutex "libdmutex, linger 1 s" "bare SET NX PX, each ms" "two classic scripts"; do
    median "$lock" pairs pairs 1 inf
done
result "each of eight threads locks a name of its own"

# section TITLE: the lines of the page below the title.
section() { awk -v title="## $1" '/^## / { is_inside = $0 == title } is_inside' "$scratch/page"; }

section "8 threads of one process, 8 names" >"$scratch/pairs"
grep -q '^| libdmutex | [0-9. ]* | 1.00 | [0-9.]* | [0-9.]* |$' "$scratch/pairs" || complain "no row of libdmutex"
grep -q '^| two classic scripts |' "$scratch/pairs" || complain "no row of a bare loop"
grep -q '^| bare grant |' "$scratch/pairs" && complain "a row of a lock that has one name only"
section "A lock and unlock that nobody else wants" | grep -q '^| bare grant |' || complain "no row of the bare grant"
grep -q '^## Waiting' "$scratch/page" && complain "a section without a figure"
result "the page has a section for each measured workload, and a row for each lock with a figure"

grep -q '^| redis-py Lock | 800 |' "$scratch/pairs" || complain "no figure of the turn before the failure"
section "Left out" | grep -qx '\* redis-py Lock: pairs: the lock has gone\.' || complain "no reason on the page"
is "turns" "$(grep -cF 'redis-py Lock|pairs|pairs|' "$scratch/figures")" 1
is "reasons" "$(section "Left out" | grep -c '^\* redis-py Lock: ')" 1
result "a lock that fails takes no further turn, and the page says why"

# ---------------------------------------------------------------------------
# PostgreSQL
# ---------------------------------------------------------------------------
if bench/dmutex-bench --store postgres --list >"$scratch/list" 2>&1 && command -v psql >"$scratch/out" &&
    { command -v initdb || ls /usr/lib/postgresql/*/bin/initdb; } >"$scratch/out" 2>&1; then
    compare --store postgres-async --seconds 0.5 --crowd 2 --only pair --only contend --json "$scratch/json" c \
        >"$scratch/page" 2>"$scratch/errors" || complain "status $?: $(tail -n 1 "$scratch/errors")"
    list_figures
    for lock in libdmutex "libdmutex, linger 1 s" "bare grant" "bare row, each ms" pg_advisory_lock "session lock"; do
        median "$lock" pair us 0.01 inf
        median "$lock" "contend 2" acquired 1 inf
    done
    # Each lock and each unlock is a transaction, and a few more are for connecting.
    for lock in "bare row, each ms" pg_advisory_lock "session lock"; do
        median "$lock" "contend 2" requests 1.9 8
    done
    grep -q '^# libdmutex compared with other locks on PostgreSQL$' "$scratch/page" || complain "no title"
    is "locks without all figures" "$(section "Left out" | sed '1,2d' | xargs)" Nothing.
    result "the locks on PostgreSQL are measured"
fi

finish
