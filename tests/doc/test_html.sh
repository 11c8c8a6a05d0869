#!/bin/sh
# `make html`: the tree is made, each link in it leads somewhere, and each page is for phones, too. Speaks TAP.
#
# Run by `make check` in the build directory, if configure has found cmark-gfm and mandoc; srcdir and CMARK_GFM come
# from there.

. "$srcdir/tests/lib/tap.sh"

sh "$srcdir/doc/html/make-html.sh" "$scratch/html" >"$scratch/complaints" 2>&1 || complain "make html fails"
result "make html makes a tree whose links all lead to an element of a page"

pages=$(find "$scratch/html" -name '*.html')
[ "$(echo "$pages" | wc -l)" -gt 40 ] || complain "only these pages: $pages"
for page in $pages; do
    grep -q '<meta name="viewport"' "$page" && grep -q '<title>..*</title>' "$page" ||
        complain "${page##*/html/}: no viewport or title"
done
result "each page has a title, and fits a phone"

grep -q '<a href="../../doc/man/dmutex-run.1.html">dmutex-run(1)</a>' "$scratch/html/doc/guide/preloading.html" ||
    complain "the guide's dmutex-run(1) is no link"
grep -q 'href="dmutex_lock.3.html">dmutex_trylock(3)' "$scratch/html/doc/man/dmutexattr.3.html" ||
    complain "dmutex_trylock(3) does not lead to the page of dmutex_lock(3)"
grep -q 'href="https://manpages.debian.org/flock.1.html' "$scratch/html/doc/man/dmutex-run.1.html" ||
    complain "flock(1) does not lead to Debian's manual"
result "pages lead to manual pages: ours by each of their names, others to Debian's"

mkdir "$scratch/broken"
printf '<p id="here"><a href="#here">1</a> <a href="#there">2</a> <a href="none.html">3</a></p>\n' \
    >"$scratch/broken/page.html"
tools=$(cd "$srcdir" && pwd)/doc/html
is "its output" "$(cd "$scratch/broken" && awk -f "$tools/path.awk" -f "$tools/check.awk" page.html | cut -d: -f2 | tr '\n' ';')" \
    " no element #there in page.html; no file none.html;"
result "the check of links finds a broken one"

finish
