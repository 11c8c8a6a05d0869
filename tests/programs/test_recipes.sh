#!/bin/sh
# The recipes of dmutex-pthread(7) for configure, CMake and Meson: the build system finds libc's functions, and the
# program's mutex is distributed, with a name that does not depend on the folder. Speaks TAP.
#
# Run by `make check-programs` in the build directory, which downloads the packages of CMake and Meson.

. "$srcdir/tests/lib/tap.sh"
srcdir=$(cd "$srcdir" && pwd)
packages=${DMUTEX_TEST_PACKAGES:?run by make check-programs}
build=$PWD
PATH=$PATH:$packages/usr/bin
PYTHONPATH=$packages/usr/lib/python3/dist-packages
PYTHONDONTWRITEBYTECODE=1
PKG_CONFIG_PATH=$build # dmutex-uninstalled.pc
export PATH PYTHONPATH PYTHONDONTWRITEBYTECODE PKG_CONFIG_PATH
for directory in "$packages"/usr/lib/*-linux-gnu*; do
    [ ! -d "$directory" ] || LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$directory
done
LD_LIBRARY_PATH=$build/libdmutex/.libs:${LD_LIBRARY_PATH-}
export LD_LIBRARY_PATH
unset CC CFLAGS LDFLAGS LIBS DMUTEX_GROUP

mkdir "$scratch/project" "$scratch/project/src"
cd "$scratch/project" || exit 1
for file in configure.ac Makefile.am CMakeLists.txt meson.build; do
    cp "$srcdir/tests/programs/recipes/$file" .
done
cp "$srcdir/tests/programs/recipes/main.c" src

# tries COMMAND...: runs the command, and shows the output of a failure.
tries() { "$@" >"$scratch/said" 2>&1 || complain "$* failed: $(cat "$scratch/said")"; }

# is_distributed FOLDER: checks the program in the folder.
is_distributed()
{
    is "$1/proj" "$("$1/proj" 2>&1)" "timedlock rwlock distributed"
    is "its names" "$("$build/tools/dmutex-names" "$1/proj" | cut -f1)" "billing/src/main.c:0"
}

dropin="$(pkg-config --variable=dropin_cflags dmutex) -DDMUTEX_GROUP='\"billing\"'"
libs=$(pkg-config --libs dmutex)

# ---------------------------------------------------------------------------
# configure: without the flags, which make gets
# ---------------------------------------------------------------------------
tries autoreconf -fi
mkdir autotools
in_autotools() { (cd autotools && "$@"); }
tries in_autotools ../configure LIBS="$libs"
tries in_autotools make CFLAGS="-g -O2 $dropin -fmacro-prefix-map=../="
is_distributed autotools
result "Autotools: configure plainly, and give the flags to make"

# The wrong way: configure with the flags does not find the functions.
mkdir refused
in_refused() { (cd refused && "$@"); }
tries in_refused ../configure CFLAGS="-g $dropin" LIBS="$libs"
! grep -q '#define HAVE_PTHREAD' refused/config.h || complain "configure finds it: the page need not warn"
result "Autotools: configure with the flags finds no function of pthread"

# ---------------------------------------------------------------------------
# CMake: without the flags, and once more with the flags; CMake keeps the results of the first run
# ---------------------------------------------------------------------------
tries cmake -S . -B cmake
tries cmake -S . -B cmake -DCMAKE_C_FLAGS="$dropin -fmacro-prefix-map=$PWD/=" -DCMAKE_C_STANDARD_LIBRARIES="$libs"
tries cmake --build cmake
is_distributed cmake
result "CMake: configure plainly, and once more with the flags"

# ---------------------------------------------------------------------------
# Meson: searches again when flags change, so a script as compiler adds the flags later
# ---------------------------------------------------------------------------
cat >dropin-cc <<'SCRIPT'
#!/bin/sh
eval exec cc "$DROPIN" '"$@"'
SCRIPT
chmod +x dropin-cc
tries env CC="$PWD/dropin-cc" meson setup meson -Dc_link_args="$libs"
tries env DROPIN="$dropin -fmacro-prefix-map=../=" ninja -C meson
is_distributed meson
result "Meson: set up with a script for a compiler, which adds the flags when ninja runs"

finish
