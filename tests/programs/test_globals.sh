#!/bin/sh
# A program that knows pthreads only, with a static mutex, a mutex of C++ and a mutex of a shared library, started on
# two hosts with three shared files, a number in each. No increment is lost if rules name the mutexes, by the symbols
# that `dmutex-run --list` has found.

. "$srcdir/tests/programs/lib.sh"
start_hosts
sources=$srcdir/tests/programs/tally
threads=3
rounds=80
expected=$((2 * threads * rounds))

# An unpacked, not installed, C++ compiler finds the headers of C++, but not the compiler's internal headers.
mkdir "$scratch/bin" "$scratch/numbers"
{
    $CC -g -O2 -shared -fPIC "$sources/library.c" -pthread -o "$scratch/bin/libtally.so" &&
        $CC -g -O2 -c "$sources/main.c" -o "$scratch/main.o" &&
        ${CXX:-g++} -idirafter "$($CC -print-file-name=include)" -g -O2 -c "$sources/cxx.cc" \
            -o "$scratch/cxx.o" &&
        $CC "$scratch/main.o" "$scratch/cxx.o" -L"$scratch/bin" -ltally -pthread -l:libstdc++.so.6 \
            -Wl,-rpath,"$scratch/bin" -o "$scratch/bin/tally"
} >"$scratch/compiled" 2>&1 || complain "$(cat "$scratch/compiled")"
result "the program is compiled, without dmutex"
[ -x "$scratch/bin/tally" ] || finish

# tally COMMAND...: runs tally by the command on both hosts; leaves three numbers.
tally()
{
    for name in main cxx library; do
        echo 0000000000 >"$scratch/numbers/$name"
    done
    both "$@" "$scratch/bin/tally" "$scratch/numbers" $threads $rounds
}
number() { sed 's/^0*//' "$scratch/numbers/$1"; }

# Runs more than once, because the two programs may run one after the other on a busy machine.
loses()
{
    tally
    note "without dmutex: main $(number main), C++ $(number cxx), library $(number library) of $expected"
    for name in main cxx library; do
        [ "$(number $name)" -lt $expected ] || return
    done
}
await loses
result "without dmutex-run, two hosts lose some"

echo >"$scratch/go"
on a dmutex-run --list --output "$scratch/list" "$scratch/bin/tally" "$scratch/numbers" 1 3 <"$scratch/go" \
    >"$scratch/listed" 2>&1 || complain "$(cat "$scratch/listed")"
grep -v '^#' "$scratch/list" | sed 's/^ *//' | sort >"$scratch/found"
printf '3  sym:%s\n' libtally.so:tally_lock_of_library tally:_ZN6ledger4Page5lock_E tally:lock_of_main |
    cmp -s - "$scratch/found" || complain "$(cat "$scratch/list")"
result "dmutex-run --list finds the three, by their symbols"

# rules: the rules that --list has found; each name is the rule's symbol.
sed 's/^[0-9]*  //; s/^\(.*:\)\(.*\)$/\1\2 => tally\/\2/' "$scratch/found" | tr '\n' ';' >"$scratch/rules"
for name in lock_of_main _ZN6ledger4Page5lock_E tally_lock_of_library; do
    watch "tally/$name"
done
tally dmutex-run -e "$(cat "$scratch/rules")" --
for name in main cxx library; do
    is "$name" "$(number $name)" $expected
done
result "under dmutex-run, nothing is lost"

# The threads of a host hand a lock on to each other: the server grants each host the lock at least once, and at most
# once for each addition.
for name in lock_of_main _ZN6ledger4Page5lock_E tally_lock_of_library; do
    grants=$(counted "$name")
    [ "$grants" -ge 2 ] && [ "$grants" -le "$expected" ] ||
        complain "$name, on the server: $grants, and not 2 to $expected"
done
result "each of the locks was one of the server's"

finish
