#!/bin/sh
# <dmutex/dmutex.hpp> in old and new C++: each test of classes.cc, on its own server. Speaks TAP.
#
# Run by `make check` in the build directory; srcdir, CXX and SANITIZER_CFLAGS come from there.

. "$srcdir/tests/lib/tap.sh"

[ -n "$CXX" ] || {
    echo "1..0 # SKIP no C++ compiler: install g++"
    exit 0
}

for standard in c++11 c++20; do
    program=$scratch/$standard
    $CXX -std=$standard -Wall -Wextra -Werror $SANITIZER_CFLAGS -I"$srcdir/include" -o "$program" \
        "$srcdir/tests/conformance/cpp/classes.cc" -Llibdmutex/.libs -ldmutex -pthread 2>"$scratch/complaints"
    result "the tests compile in $standard"
    for name in $(LD_LIBRARY_PATH=libdmutex/.libs "$program"); do
        LD_LIBRARY_PATH=libdmutex/.libs "$program" "$name" >"$scratch/complaints" 2>&1 || complain "status $?"
        result "$standard: $name"
    done
done

finish
