#!/bin/sh
# Runs the pages of doc/guide: each command and program there has the effect that the page shows. Speaks TAP.
#
# Run by `make check` in the build directory; srcdir, CC and DMUTEX_TEST_SERVER come from there.

. "$srcdir/tests/lib/tap.sh"
. "$srcdir/tests/doc/page.sh"

pages=$(cd "$guide" && ls *.md | sed 's/\.md$//')
run_pages ' ' $pages

grep -c '^```.* not-run' "$guide"/*.md | awk -F: '{ all += $2 } END { exit all > 4 }' ||
    complain "more than 4 blocks are not run: $(grep -n '^```.* not-run' "$guide"/*.md)"
result "few blocks are only shown"

finish
