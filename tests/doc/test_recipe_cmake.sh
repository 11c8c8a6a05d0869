#!/bin/sh
# The recipes of doc/guide/porting.md for CMake. Speaks TAP.
#
# Run by `make check` in the build directory, if configure has found the tool.

. "$srcdir/tests/lib/tap.sh"
. "$srcdir/tests/doc/page.sh"
run_pages ' cmake ' porting
finish
