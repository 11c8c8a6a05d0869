#!/bin/sh
# `make dist` contains all sources: if one is missing, no package can be built.
# Speaks TAP. Run by `make check` in the build directory.

. "$srcdir/tests/lib/tap.sh"

# The list names files, and folders that are taken as a whole.
env -u MAKEFLAGS -u MFLAGS make -s print-dist | tr ' ' '\n' | sed "s,^$srcdir/,," | sort -u >"$scratch/listed"
[ "$(wc -l <"$scratch/listed")" -gt 900 ] || complain "only $(wc -l <"$scratch/listed") files are in the list"
result "make tells the list"

(cd "$srcdir" && find include libdmutex preload tools tests bench examples doc debian \
    \( -name '*.[ch]' -o -name '*.hpp' -o -name '*.cc' -o -name '*.lua' -o -name '*.sh' -o -name '*.awk' -o -name '*.pml' \
    -o -name '*.md' -o -name '*.mk' -o -name '*.py' -o -name '*.[1-8]' \) ! -path 'libdmutex/stores/redis/*/scripts.c') |
    sort >"$scratch/there"
awk 'NR == FNR { listed[$0]; next }
     { for (at = $0; !(at in listed) && at ~ /\//; sub(/\/[^\/]*$/, "", at)) continue
       if (!(at in listed)) print "in no list for make dist: " $0 }' "$scratch/listed" "$scratch/there" >"$scratch/complaints"
result "each source is in the list"

finish
