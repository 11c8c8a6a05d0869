#!/bin/sh
# One source, pool.c, built twice: `before` with plain pthread, `after` with <dmutex/pthread.h> included by -include.
# Each program is started as two processes that share a file.
#
#     show.sh [DIRECTORY]       of the two programs; this script's own by default
#
# Exit status 0: `before` lost a number; `after` lost none.

set -u
programs=${1:-$(dirname "$0")}
jobs=500
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

# run PROGRAM: twice at once, each adding 1 to 500 to the same file; prints the sum.
# Both processes get their jobs when both are there.
run()
{
    rm -f "$scratch"/*
    mkfifo "$scratch/first" "$scratch/second"
    printf '%020d\n' 0 >"$scratch/total"
    "$1" "$scratch/total" <"$scratch/first" &
    first=$!
    "$1" "$scratch/total" <"$scratch/second" &
    second=$!
    seq $jobs | tee "$scratch/first" >"$scratch/second"
    wait $first && wait $second && sed 's/^0*//' "$scratch/total"
}

expected=$((jobs * (jobs + 1)))
# Two processes that do not meet lose nothing: then again.
for try in 1 2 3 4 5 6 7 8 9 10; do
    before=$(run "$programs/before") || exit 1
    [ "$before" -eq $expected ] || break
done
after=$(run "$programs/after") || exit 1

echo "Two processes add 1 to $jobs to one file: $expected is right."
echo "before, pthread:                    $before"
echo "after, the same source with dmutex: $after"
[ "$before" -ne $expected ] && [ "$after" -eq $expected ]
