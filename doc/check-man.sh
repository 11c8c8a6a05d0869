#!/bin/sh
# Checks the manual against the headers: every public function has a page, no page names a function that
# does not exist, the examples compile, and mandoc, where installed, has no complaints. Speaks TAP.
#
# Run by `make check` in the build directory; srcdir and CC come from there.

. "$srcdir/tests/lib/tap.sh"
man=$srcdir/doc/man

# Functions by the headers, by the pages' NAME sections, and by the names that man(1) finds.
cat "$srcdir"/include/dmutex/*.h | sed -n 's/^DMUTEX_API.*[ *]\(d[a-z]*_[a-z_]*\)(.*/\1/p' |
    sort -u >"$scratch/declared"
sed -n 's/^\.Nm \(d[a-z]*_[a-z_]*\).*/\1/p' "$man"/*.[37] | sort -u >"$scratch/named"
{
    ls "$man" | sed -n 's/\.3$//p'
    ls doc/links | sed -n 's/\.3$//p'
} | sort -u >"$scratch/found"

comm -23 "$scratch/declared" "$scratch/named" >"$scratch/complaints"
result "every public function is in a page"
comm -13 "$scratch/declared" "$scratch/named" >"$scratch/complaints"
result "every function in a page is public"
comm -23 "$scratch/declared" "$scratch/found" >"$scratch/complaints"
result "man finds every public function by its name"

# dmutex(7) is the table of contents.
sed -n 's/^\.Fn \(d[a-z]*_[a-z_]*\).*/\1/p' "$man/dmutex.7" | sort -u | comm -23 "$scratch/declared" - >"$scratch/complaints"
for page in "$man"/*.[1-8]; do
    page=${page##*/}
    [ "$page" = dmutex.7 ] || grep -q "^\.Xr ${page%.*} ${page##*.}" "$man/dmutex.7" || complain "dmutex(7) does not name $page"
done
result "dmutex(7) names every page and every public function"

# Programs and files: by the NAME sections.
for page in "$man"/*.[1568]; do
    section=${page##*.}
    for name in $(sed -n '/^\.Sh NAME/,/^\.Nd/s/^\.Nm \([^ ]*\).*/\1/p' "$page"); do
        [ -e "$man/$name.$section" ] || [ -e "doc/links/$name.$section" ] || complain "no page $name($section)"
    done
done
result "man finds every program and file by its name"

# An example is a display that begins with an include; \e is roff's backslash.
for page in "$man"/*.[1-8]; do
    awk -v to="$scratch/${page##*/}" '
        /^\.Ed/ { is_display = is_code = 0 }
        is_display && !is_code && /^#include/ { is_code = 1; number++ }
        is_code { gsub(/\\e/, "\\"); print >(to "-" number ".c") }
        /^\.Bd -literal/ { is_display = 1 }' "$page"
done
for source in "$scratch"/*.c; do
    $CC -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -fsyntax-only -I"$srcdir/include" "$source" \
        2>>"$scratch/complaints" || echo "${source##*/} does not compile" >>"$scratch/complaints"
done
result "the examples in the pages compile"

# Its remarks on style are left out: they depend on its version and on what is installed.
if command -v mandoc >/dev/null; then
    mandoc -T lint -W warning "$man"/*.[1-8] >"$scratch/complaints" 2>&1
    result "mandoc warns of nothing"
fi

finish
