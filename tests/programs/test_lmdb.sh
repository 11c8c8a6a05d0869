#!/bin/sh
# LMDB, by Python, in a directory that two hosts share. LMDB's mutex of writers lies in the lock file; a rule of
# `dmutex-run --list` names the mutex, and then the server excludes the writers.

. "$srcdir/tests/programs/lib.sh"
start_hosts
increments=$srcdir/tests/programs/increments.py
each=400

# new: makes an empty database. number: prints the number in the database.
new()
{
    rm -rf "$scratch/lmdb"
    mkdir "$scratch/lmdb"
}
number()
{
    python3 -c 'import lmdb, sys
with lmdb.open(sys.argv[1], lock=False).begin() as transaction:
    print(transaction.get(b"number").decode())' "$scratch/lmdb" 2>&1
}

# Takes the rule of the only mutex with as many locks as writes.
new
echo . >"$scratch/go"
on a dmutex-run --list --output "$scratch/list" python3 "$increments" "$scratch/lmdb" 7 <"$scratch/go" \
    >"$scratch/listed" 2>&1 || complain "$(cat "$scratch/listed")"
rule=$(sed -n 's/^ *7  \(map:[^ ]*lock.mdb+0x[0-9a-f]*\)  # robust$/\1/p' "$scratch/list")
[ -n "$rule" ] || complain "$(cat "$scratch/list")"
result "dmutex-run --list finds the mutex of writers in the lock file"

# b locks the mutex in the file, and a the server's mutex, so a and b do not exclude each other. Increments that are
# lost here are kept in the test below only by the server.
cat >"$scratch/only" <<'END'
#!/bin/sh
[ "$DMUTEX_HOST" = "$1" ] || { shift 2; exec "$@"; }
rule=$2
shift 2
exec dmutex-run -e "$rule" -- "$@"
END
# Runs more than once, because the two programs may run one after the other on a busy machine.
loses()
{
    new
    both sh "$scratch/only" a "$rule => lmdb/writer sharedstate=yes" python3 "$increments" "$scratch/lmdb" $each
    : >"$scratch/complaints" # an LMDB with two writers at once may also break
    alone=$(number)
    note "with the rule on one host only: $alone of $((2 * each))"
    [ "$alone" != $((2 * each)) ]
}
await loses
result "two hosts of which one has the rule do not exclude each other"

new
watch lmdb/writer
both dmutex-run -e "$rule => lmdb/writer sharedstate=yes" -- python3 "$increments" "$scratch/lmdb" $each
is "the number" "$(number)" $((2 * each))
is "locks, on the server" "$(counted lmdb/writer)" $((2 * each))
result "under dmutex-run, every increment of two hosts is kept, and counted on the server"

finish
