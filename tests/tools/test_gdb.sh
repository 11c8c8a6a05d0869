#!/bin/sh
# gdb shows objects by their meaning, with tools/trace/dmutex-gdb.py. Speaks TAP.
#
# Run by `make check` in the build directory, if configure has found a gdb with Python; srcdir and CC come from there.

. "$srcdir/tests/lib/tap.sh"

cat >"$scratch/objects.c" <<'SOURCE'
#include <dmutex/dmutex.h>
static dmutex_t plain = DMUTEX_INITIALIZER("billing/ledger");
static dmutex_t robust = DMUTEX_ROBUST_INITIALIZER("billing/\x01\"x");
static dmutex_t local = DMUTEX_ANONYMOUS_INITIALIZER;
static dcond_t paid = DCOND_INITIALIZER("billing/paid");
int main(void)
{
    plain.dm_lease_ms = 2000;
    plain.dm_type = 1;
    plain.dm_fairness = 1;
    return (int)(plain.dm_hash + robust.dm_hash + local.dm_hash + paid.dm_state) * 0;
}
SOURCE
$CC -g -O0 -I"$srcdir/include" -o "$scratch/objects" "$scratch/objects.c" 2>"$scratch/complaints"
result "the program compiles"

gdb -nx -batch -ex "source $srcdir/tools/trace/dmutex-gdb.py" -ex 'break objects.c:11' -ex run \
    -ex 'print plain' -ex 'print robust' -ex 'print local' -ex 'print paid' "$scratch/objects" >"$scratch/out" 2>&1
shown() { grep -qxF -- "$1" "$scratch/out" || complain "not shown: $1; but: $(grep '^\$' "$scratch/out")"; }

shown '$1 = dmutex "billing/ledger", recursive, fair, lease 2000 ms'
shown '$2 = dmutex "billing/\x01\x22x", robust'
shown "\$3 = dmutex without a name, libc's own"
shown '$4 = dcond "billing/paid", CLOCK_REALTIME'
result "gdb prints mutexes and condition variables by name and kind"

finish
