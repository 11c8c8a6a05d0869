#!/bin/sh
# Reads the manual as its readers do: each page is rendered by groff and by mandoc, and the rendering is
# searched for lost quotes and dashes, missing parts, and missing names. Speaks TAP.
#
# Run by `make check` in the build directory; srcdir comes from there.

. "$srcdir/tests/lib/tap.sh"
LC_ALL=C.UTF-8 # quotes and dashes are single characters for sed
man=$srcdir/doc/man

for program in groff mandoc; do
    if ! command -v $program >/dev/null; then
        echo "1..0 # SKIP $program is not installed"
        exit 0
    fi
done

# Joins the words that were cut at the end of a line, also after their own hyphen.
join_words() { sed -E -e ':again' -e '/(‐|[[:alnum:]]-)$/{N;s/(‐|([[:alnum:]]-))\n */\2/;b again' -e '}'; }
by_groff() { groff -mdoc -Tutf8 -P-cbou "$1" 2>/dev/null | join_words; }
by_mandoc() { mandoc -Tutf8 "$1" | sed 's/.\x08//g' | join_words; }

# groff 1.23 quotes the titles of sections (Sx); mandoc and earlier versions of groff do not.
without_titles() { sed -E '/^\./s/(^\.| )Sx /\1No /g' "$1"; }

# One word a line, without the lines at the top and the bottom, and with one kind of dash; .Nd of groff 1.24 prints two.
words() { sed -e '1d' -e '$d' -e 's/–/—/g' -e 's/——*/—/g' | tr -s ' \t\n' '\n\n\n' | grep .; }

for page in "$man"/*.[1-8]; do
    name=${page##*/}
    by_groff "$page" >"$scratch/$name.txt"
    without_titles "$page" | by_groff - | words >"$scratch/by-groff"
    by_mandoc "$page" | words >"$scratch/by-mandoc"
    diff "$scratch/by-groff" "$scratch/by-mandoc" >"$scratch/difference" ||
        complain "$name: groff and mandoc differ: $(sed -n '2,3p' "$scratch/difference" | tr '\n' ' ')"
done
result "groff and mandoc show the same words"

# By paragraph: curly quotes come in pairs, one pair inside the other never; straight ones are even in number.
for text in "$scratch"/*.[1-8].txt; do
    sed -E -e 's/(‘|“)/\x02/g' -e 's/(’|”)/\x03/g' "$text" | awk -v page="${text##*/}" '
        BEGIN { RS = "" }
        {
            quotes = $0
            gsub(/[^\002\003]/, "", quotes)
            gsub(/\002\003/, "", quotes)
            straight = $0
            gsub(/[^"]/, "", straight)
            if (quotes != "" || length(straight) % 2 || /, ,/ || /"""/ || /\("/ && !/\("[^"]*"/) {
                gsub(/[ \n]+/, " ")
                print page ": " substr($0, 1, 160)
            }
        }' >>"$scratch/complaints"
done
result "no quote is lost"

# A long option has two dashes, and they are those of the keyboard.
grep -nE '(−|–)[[:alnum:]]' "$scratch"/*.[1-8].txt >>"$scratch/complaints"
grep -nE '(^|[[:space:]|[])-(check|config|dry-run|help|list|map|output|quiet|verbose|version)([^[:alnum:]]|$)' \
    "$scratch"/dmutex-*.1.txt >>"$scratch/complaints"
result "no dash is lost"

for text in "$scratch"/*.3.txt; do
    for heading in 'RETURN VALUES' ERRORS ATTRIBUTES 'SEE ALSO' HISTORY; do
        grep -qx "$heading" "$text" || complain "${text##*/}: no $heading"
    done
    for attribute in Threads Blocking Cancellation Signals Fork; do
        grep -q "^ *$attribute " "$text" || complain "${text##*/}: nothing about $attribute"
    done
done
result "each page of functions has all its parts"

head -n 24 "$scratch/dmutex.1.txt" | grep -q 'dmutex(7)' || complain "no dmutex(7) on the first screen of dmutex(1)"
result "man dmutex leads to dmutex(7) on its first screen"

cat "$scratch"/*.[1-8].txt | sed 's/-D\(DMUTEX_\)/\1/g' | tr -c '[:alnum:]_' '\n' | sort -u >"$scratch/all-words"
# Complains about each word on standard input that no page has.
want_words() { sort -u | comm -23 - "$scratch/all-words" | sed "s/^/on no page: /" >>"$scratch/complaints"; }

headers="$srcdir"/include/dmutex
cat "$headers"/*.h | sed -nE 's/^#define ((DMUTEX|DCOND)_[A-Z_0-9]+).*/\1/p' |
    grep -vE '_(H|PRIVATE_.*|API|ALIGNED|BEGIN_DECLS|END_DECLS)$|PRIVATE_' | want_words
cat "$headers"/*.h | sed -nE 's/^typedef .*\(\*(d[a-z_]+)\).*/\1/p; s/^} *(DMUTEX_ALIGNED )?(d[a-z_]+_t);/\2/p' | want_words
sed -n '/^typedef struct dmutex_info {/,/^}/s/^    [a-z0-9_]* *\([a-z_]*\)[[;].*/\1/p' "$headers/types.h" | want_words
result "every public macro, type and field is on a page"

cat "$srcdir"/libdmutex/*/*.c "$srcdir"/preload/*/*.c "$srcdir"/preload/*/*/*.c |
    grep -oE '"(DMUTEX_[A-Z_]+)"' | tr -d '"' | want_words
result "every environment variable is on a page"

sed -nE 's/.*is_word\(key, "([a-z_]+)"\).*/\1/p' "$srcdir/libdmutex/store/url.c" | want_words
result "every option of the URL is on a page"

finish
