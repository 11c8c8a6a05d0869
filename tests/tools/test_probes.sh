#!/bin/sh
# The library has its static probes, and the tracing scripts use no other. Speaks TAP.
#
# Run by `make check` in the build directory, if the library was built with <sys/sdt.h>; srcdir comes from there.

. "$srcdir/tests/lib/tap.sh"

readelf -n libdmutex/.libs/libdmutex.so >"$scratch/notes" || complain "readelf: status $?"
awk '$1 == "Provider:" { of = $2 } $1 == "Name:" && of == "dmutex" { print $2 }' "$scratch/notes" |
    sort -u >"$scratch/probes"
is "probes" "$(xargs <"$scratch/probes")" "acquired lost released wait"
result "the library has the four probes"

for script in tools/trace/*.bt; do
    sed -n 's/^usdt:.*:dmutex:\([a-z]*\)$/\1/p' "$script" >"$scratch/used"
    [ -s "$scratch/used" ] || complain "${script##*/} uses no probe"
    while read -r probe; do
        grep -qx "$probe" "$scratch/probes" || complain "${script##*/}: there is no probe $probe"
    done <"$scratch/used"
done
result "the tracing scripts use probes that there are"

finish
