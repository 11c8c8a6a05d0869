#!/bin/sh
# doc/guide/troubleshooting.md: each heading is a message of the sources, and each failure and each line of the log has
# a heading. Speaks TAP. Run by `make check` in the build directory; srcdir comes from there.

. "$srcdir/tests/lib/tap.sh"
page=$srcdir/doc/guide/troubleshooting.md
literals() { awk -f "$srcdir/tests/doc/literals.awk" "$@"; }

sed -n 's/^### `\(.*\)`$/\1/p' "$page" >"$scratch/headings"
[ "$(wc -l <"$scratch/headings")" -gt 60 ] || complain "the page has too few headings: is it read as it should be?"
[ "$(grep -c '^### ' "$page")" -eq "$(wc -l <"$scratch/headings")" ] || complain "a heading is no message in backquotes"
sort "$scratch/headings" | uniq -d >>"$scratch/complaints"
result "each heading is a message, once"

literals $(find "$srcdir/libdmutex" "$srcdir/preload" "$srcdir/tools" -name '*.[ch]' -o -name '*.def') >"$scratch/all"
while read -r heading; do
    grep -qF -- "$heading" "$scratch/all" || complain "no source says: $heading"
done <"$scratch/headings"
result "each message is in the sources"

# want_headings: complains about each message of standard input that no heading begins.
want_headings()
{
    tr '"' "'" <"$scratch/headings" >"$scratch/plain"
    tr '"' "'" | awk 'FNR == NR { heading[$0] = 1; sub(/: …$/, ": "); heading[$0] = 1; next }
        {
            for (text in heading)
                if (index($0, text) == 1)
                    next
            print "no heading: " $0
        }' "$scratch/plain" - >>"$scratch/complaints"
}

literals "$srcdir/libdmutex/base/error.def" | sed 's/X([A-Z_]*, *[A-Z]*, *"/\n&/g' |
    sed -n 's/^X([A-Z_]*, *[A-Z]*, *"\(.*\)").*/\1/p' >"$scratch/failures"
[ "$(wc -l <"$scratch/failures")" -eq "$(grep -c '^X(' "$srcdir/libdmutex/base/error.def")" ] ||
    complain "not each line of error.def is read"
want_headings <"$scratch/failures"
result "each failure has a heading: error.def"

awk -v quote="'" -f "$srcdir/tests/doc/literals.awk" $(find "$srcdir/libdmutex" -name '*.c') |
    grep -oE 'dm_log_(error|alarm|warn|info)\( *"[^"]*' |
    sed 's/^[^"]*"//' | grep -v '^…' >"$scratch/lines"
[ "$(wc -l <"$scratch/lines")" -gt 10 ] || complain "not the lines of the log are read"
want_headings <"$scratch/lines"
result "each line of the log has a heading"

finish
