#!/bin/sh
# LMDB, by Python, in one directory that two hosts share. Its mutex of writers lies in the lock file;
# a rule of `dmutex-run --list` names it, and then it is the server that excludes.

. "$srcdir/tests/programs/lib.sh"
start_hosts
increments=$srcdir/tests/programs/increments.py
each=400

# new: an empty database. number: what is in it.
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

# The rule of the mutex that was locked as often as it was written; of the others there is none.
new
echo . >"$scratch/go"
on a dmutex-run --list --output "$scratch/list" python3 "$increments" "$scratch/lmdb" 7 <"$scratch/go" \
    >"$scratch/listed" 2>&1 || complain "$(cat "$scratch/listed")"
rule=$(sed -n 's/^ *7  \(map:[^ ]*lock.mdb+0x[0-9a-f]*\)  # robust$/\1/p' "$scratch/list")
[ -n "$rule" ] || complain "$(cat "$scratch/list")"
result "dmutex-run --list finds the mutex of writers in the lock file"

# b goes by the mutex in the file, and a by the server: they know nothing of each other. What is lost
# here, or breaks, has nothing but the server to keep it in the test below.
new
cat >"$scratch/only" <<'END'
#!/bin/sh
[ "$DMUTEX_HOST" = "$1" ] || { shift 2; exec "$@"; }
rule=$2
shift 2
exec dmutex-run -e "$rule" -- "$@"
END
both sh "$scratch/only" a "$rule => lmdb/writer sharedstate=yes" python3 "$increments" "$scratch/lmdb" $each
: >"$scratch/complaints" # an LMDB that is written by two may also break
alone=$(number)
note "with the rule on one host only: $alone of $((2 * each))"
[ "$alone" != $((2 * each)) ] || complain "nothing is lost when only one host has the rule"
result "two hosts of which one has the rule do not exclude each other"

new
watch lmdb/writer
both dmutex-run -e "$rule => lmdb/writer sharedstate=yes" -- python3 "$increments" "$scratch/lmdb" $each
is "the number" "$(number)" $((2 * each))
is "locks, on the server" "$(counted lmdb/writer)" $((2 * each))
result "under dmutex-run, every increment of two hosts is kept, and counted on the server"

finish
