#!/bin/sh
# The interface for compiled programs is the one of tests/abi/interface. Speaks TAP.
#
# A difference is a break, an addition or neither: see "The interface" in HACKING.md, and then say `make update-abi`.
# Run by `make check` in the build directory.

. "$srcdir/tests/lib/tap.sh"
kept=$srcdir/tests/abi/interface

sh "$srcdir/tests/abi/list.sh" >"$scratch/now" 2>"$scratch/errors" ||
    complain "tests/abi/list.sh failed: $(cat "$scratch/errors")"
for kind in symbol declaration macro size; do
    grep -q "^$kind " "$scratch/now" || complain "tests/abi/list.sh finds no $kind"
done
result "the interface can be listed"

diff "$kept" "$scratch/now" | grep '^[<>]' >"$scratch/complaints"
result "the interface is the kept one (<), and not another one (>)"

finish
