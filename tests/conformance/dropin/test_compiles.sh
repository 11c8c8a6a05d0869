#!/bin/sh
# Ordinary sources compile with <dmutex/pthread.h>, without a warning, at any place of the header; and
# the C++ library's own objects stay unchanged. Speaks TAP.
#
# Run by `make check` in the build directory; srcdir, CC, CXX and SANITIZER_CFLAGS come from there.

. "$srcdir/tests/lib/tap.sh"
sources=$srcdir/tests/conformance/dropin

# compile COMPILER FLAGS...: complains of warnings, and unless the source on standard input compiles.
compile()
{
    "$@" -Wall -Wextra -Wpedantic -Werror -I"$srcdir/include" -fsyntax-only - \
        2>>"$scratch/complaints" || echo "does not compile: $*" >>"$scratch/complaints"
}

# The oldest, in C the usual, and the newest; in long runs all.
c_standards="c99 gnu11 c17"
cxx_standards="c++98 gnu++20"
if [ "${DMUTEX_TEST_LONG:-0}" != 0 ]; then
    c_standards="c99 c11 c17 gnu99 gnu11 gnu17"
    cxx_standards="c++98 gnu++11 c++14 c++17 c++20 gnu++20"
fi

given="-include dmutex/pthread.h"
included="#include <dmutex/pthread.h>"

# in_c SENTENCE FLAGS LINE...: a source that begins with the lines, in C old and new, strict and not.
in_c()
{
    sentence=$1
    flags=$2
    shift 2
    printf '%s\n' "$@" | cat - "$sources/uses.c" >"$scratch/unit"
    for standard in $c_standards; do
        compile $CC -x c -std=$standard $flags <"$scratch/unit"
    done
    result "C: $sentence"
}

# in_cxx SENTENCE FLAGS LINE...: the same in C++, together with all headers that use threads there.
in_cxx()
{
    [ -n "$CXX" ] || return
    sentence=$1
    flags=$2
    shift 2
    printf '%s\n' "$@" | cat - "$scratch/headers" "$sources/uses.c" >"$scratch/unit"
    for standard in $cxx_standards; do
        compile $CXX -x c++ -std=$standard $flags <"$scratch/unit"
    done
    result "C++: $sentence"
}

# ---------------------------------------------------------------------------
# Places of the header
# ---------------------------------------------------------------------------
in_c "given by -include" "$given" ''
in_c "given by -include, and it defines _GNU_SOURCE" "$given" '#define _GNU_SOURCE'
in_c "given by -include, and it defines _DEFAULT_SOURCE" "$given" '#define _DEFAULT_SOURCE'
in_c "given by -include, and it defines _XOPEN_SOURCE" "$given" '#define _XOPEN_SOURCE 600'
in_c "given by -include, and it defines _POSIX_C_SOURCE" "$given" '#define _POSIX_C_SOURCE 200112L'
in_c "given by -include, with names" "$given -DDMUTEX_GROUP=\"billing\"" ''
in_c "given by -include, and included" "$given" "$included"
in_c "as pkg-config says" "$(sed -n "s/^dropin_cflags=//p" dmutex-uninstalled.pc)" ''
in_c "the first that is included" '' "$included"
in_c "behind _GNU_SOURCE" '' '#define _GNU_SOURCE' "$included"
in_c "behind _XOPEN_SOURCE" '' '#define _XOPEN_SOURCE 600' "$included"
in_c "before libc's headers" '' "$included" '#include <stdio.h>' '#include <unistd.h>'
in_c "behind <pthread.h>" '-DBARE' '#include <pthread.h>' "$included"
in_c "behind _GNU_SOURCE and <pthread.h>" '' '#define _GNU_SOURCE' '#include <pthread.h>' "$included"
in_c "behind _XOPEN_SOURCE and <pthread.h>" '' '#define _XOPEN_SOURCE 600' '#include <pthread.h>' \
    "$included"

cat >"$scratch/headers" <<'HEADERS'
#include <fstream>
#include <string>
#if __cplusplus >= 201103L
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#endif
HEADERS
in_cxx "given by -include, with names" "$given -DDMUTEX_GROUP=\"billing\"" ''
in_cxx "the first that is included" '' "$included"
in_cxx "behind <pthread.h>" '' '#define _GNU_SOURCE 1' '#include <pthread.h>' "$included"
if [ -n "$CXX" ]; then
    cat "$scratch/headers" >"$scratch/before"
    in_cxx "behind the headers of the C++ library" '' "$(cat "$scratch/before")" "$included"
fi

# With "/u:0" after the group: 201 bytes are one too many.
for compiler in "$CC -x c -std=c99" "$CC -x c -std=gnu17" ${CXX:+"$CXX -x c++ -std=c++98" "$CXX -x c++ -std=c++20"}; do
    for object in mutex cond; do
        initialiser=PTHREAD_$(echo $object | tr a-z A-Z)_INITIALIZER
        ! echo "pthread_${object}_t long_one = $initialiser;" |
            $compiler $given -DDMUTEX_GROUP="\"$(printf %0197d 0)\"" -DDMUTEX_UNIT='"u"' \
                -I"$srcdir/include" -fsyntax-only - 2>"$scratch/said" ||
            echo "a name of 201 bytes compiles: $compiler, $object" >>"$scratch/complaints"
        [ "${compiler%c++*}" != "$compiler" ] || grep -q this_name_is_longer_than_200_bytes "$scratch/said" ||
            echo "the compiler does not say that a name is too long: $compiler" >>"$scratch/complaints"
        echo "pthread_${object}_t long_one = $initialiser;" |
            compile $compiler $given -DDMUTEX_GROUP="\"$(printf %0196d 0)\"" -DDMUTEX_UNIT='"u"'
    done
done
result "a name that is too long is an error, and says so"

# ---------------------------------------------------------------------------
# Names that the header does not change
# ---------------------------------------------------------------------------

# Locks that keep one process's threads apart, but not other processes: the compiler tells each of the calls.
calls="pthread_rwlock_rdlock pthread_rwlock_trywrlock pthread_spin_lock pthread_barrier_wait sem_wait"
cat >"$scratch/unit" <<'LOCKS'
#include <semaphore.h>
#include <pthread.h>
struct locks { pthread_rwlock_t rwlock; pthread_spinlock_t spin; pthread_barrier_t barrier; sem_t sem; };
int use(struct locks *it);
int use(struct locks *it)
{
    return pthread_rwlock_rdlock(&it->rwlock) + pthread_rwlock_trywrlock(&it->rwlock) + pthread_spin_lock(&it->spin) +
           pthread_barrier_wait(&it->barrier) + sem_wait(&it->sem);
}
LOCKS
for compiler in "$CC -x c -std=gnu99" "$CC -x c -std=gnu17" ${CXX:+"$CXX -x c++ -std=c++98" "$CXX -x c++ -std=c++20"}; do
    ! $compiler $given -Werror -I"$srcdir/include" -fsyntax-only - <"$scratch/unit" 2>"$scratch/said" ||
        echo "no warning: $compiler" >>"$scratch/complaints"
    for call in $calls; do
        grep "$call.*stays in this process" "$scratch/said" >/dev/null ||
            echo "$call: no warning: $compiler" >>"$scratch/complaints"
    done
    compile $compiler $given -DDMUTEX_NO_WARNINGS <"$scratch/unit"
done
result "what stays in the process is told by a warning, which can be silenced"

# build SOURCE NAME FLAGS...: builds a C++ program; the program is empty when there were complaints.
build()
{
    source=$1
    name=$2
    shift 2
    $CXX "$@" $SANITIZER_CFLAGS -pthread "$sources/$source" -o "$scratch/$name" \
        -I"$srcdir/include" -Llibdmutex/.libs -Wl,-rpath,"$PWD/libdmutex/.libs" -ldmutex \
        2>>"$scratch/complaints" || echo "$source: cannot be built" >>"$scratch/complaints"
}

if [ -n "$CXX" ]; then
    for standard in $cxx_standards; do
        build layout.cc libc -std=$standard
        build layout.cc ours -std=$standard $given
        "$scratch/libc" >"$scratch/sizes"
        "$scratch/ours" | diff "$scratch/sizes" - >>"$scratch/complaints"
        [ -s "$scratch/sizes" ] || echo "no sizes in $standard" >>"$scratch/complaints"
    done
    result "the C++ library's own objects keep their sizes"

    # No server is there, and none is started.
    build locals.cc locals -std=c++11 $given
    export DMUTEX_URL="unix://$scratch/none" DMUTEX_ONDOWN=fail
    DMUTEX_PRIVATE=libc "$scratch/locals" >>"$scratch/complaints" 2>&1
    result "std::mutex and a pthread mutex without a name are libc's"
    DMUTEX_PRIVATE=server "$scratch/locals" asked >>"$scratch/complaints" 2>&1
    result "std::mutex stays libc's, beside a pthread mutex that is the server's"
fi

finish
