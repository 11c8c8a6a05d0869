#!/bin/sh
# A CMake project finds the installed library by find_package(dmutex), links with it and runs. Speaks TAP.
#
# Run by `make check-programs` in the build directory, which downloads CMake.

. "$srcdir/tests/lib/tap.sh"
packages=${DMUTEX_TEST_PACKAGES:?run by make check-programs}
build=$PWD
PATH=$PATH:$packages/usr/bin
LD_LIBRARY_PATH=
for directory in "$packages"/usr/lib/*-linux-gnu*; do
    [ ! -d "$directory" ] || LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$directory
done
export PATH LD_LIBRARY_PATH
unset CC CFLAGS LDFLAGS LIBS PKG_CONFIG_PATH CMAKE_PREFIX_PATH

# tries COMMAND...: runs the command, and shows the output of a failure.
tries() { "$@" >"$scratch/said" 2>&1 || complain "$* failed: $(cat "$scratch/said")"; }

# The jobs of the make that runs the tests are not this one's.
tries env -u MAKEFLAGS -u MFLAGS make install DESTDIR="$scratch/root" LD_LIBRARY_PATH=
config=$(find "$scratch/root" -name dmutexConfig.cmake)
[ -n "$config" ] || complain "no dmutexConfig.cmake is installed"
library=$(dirname "$config")/../..
mkdir "$scratch/project"
cd "$scratch/project" || exit 1

cat >CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.13)
project(finds C)
find_package(dmutex ${WANTED} REQUIRED)
find_package(dmutex REQUIRED) # twice: two libraries of a project may both look for it
add_executable(plain plain.c)
target_link_libraries(plain PRIVATE dmutex::dmutex)
add_executable(ported ported.c)
target_compile_definitions(ported PRIVATE DMUTEX_GROUP="cmake")
add_custom_command(OUTPUT made.c COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_SOURCE_DIR}/ported.c made.c DEPENDS ported.c)
add_executable(made ${CMAKE_BINARY_DIR}/made.c)
target_compile_definitions(made PRIVATE DMUTEX_GROUP="cmake")
target_link_libraries(made PRIVATE dmutex::dropin)
target_link_libraries(ported PRIVATE dmutex::dropin)
CMAKE
cat >plain.c <<'SOURCE'
#include <stdio.h>
#include <dmutex/dmutex.h>

int main(void)
{
    return puts(dmutex_version_np()) < 0;
}
SOURCE
cat >ported.c <<'SOURCE'
#include <pthread.h>

static pthread_mutex_t ledger = PTHREAD_MUTEX_INITIALIZER;

int main(void)
{
    return pthread_mutex_trylock(&ledger) == 0;
}
SOURCE

# configures VERSION: CMake accepts the installed library for a project that wants this version.
configures()
{
    rm -rf out
    cmake -S . -B out "-DWANTED=$1" "-Ddmutex_DIR=$(dirname "$config")" >"$scratch/said" 2>&1
}

configures "" || complain "without a version: $(cat "$scratch/said")"
tries cmake --build out
result "a project finds the library, and links"

LD_LIBRARY_PATH=$library${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
is "the program says" "$(out/plain 2>&1)" "$PACKAGE_VERSION"
readelf -d out/plain | grep -q 'NEEDED.*\[libdmutex\.so\.0\]' || complain "the program does not need libdmutex.so.0"
result "the program runs with the installed library"

is "its names" "$("$build/tools/dmutex-names" out/ported 2>&1 | cut -f1)" "cmake/ported.c:0"
is "the names of a generated source" "$("$build/tools/dmutex-names" out/made 2>&1 | cut -f1)" "cmake/made.c:0"
DMUTEX_URL=unix:///nonexistent DMUTEX_ONDOWN=fail out/ported || complain "a mutex without a server was acquired"
result "dmutex::dropin distributes the mutexes of unchanged source"

short=${PACKAGE_VERSION%.*}
for version in "$PACKAGE_VERSION" "$short" "${PACKAGE_VERSION%%.*}"; do
    configures "$version" || complain "refused for version $version: $(cat "$scratch/said")"
done
for version in 99 "$short.99" "$((${PACKAGE_VERSION%%.*} + 1)).0" "${PACKAGE_VERSION%%.*}.0"; do
    ! configures "$version" || complain "accepted for version $version"
done
result "a version that is too new, or of another interface, is refused"

finish
