#!/bin/sh
# A test script without a scratch directory exits, and writes nothing: "$scratch/bin/cc" would be /bin/cc.
# Speaks TAP. Run by `make check` in the build directory.

. "$srcdir/tests/lib/tap.sh"

# sourced SCRIPT: sources the script without a scratch directory; prints "went on" if the script continued.
# A mktemp that fails is first in PATH; mkdir, the first that writes, is a function that ends the shell.
mkdir "$scratch/bin"
printf '#!/bin/sh\nexit 1\n' >"$scratch/bin/mktemp"
chmod +x "$scratch/bin/mktemp"
sourced()
{
    env -u scratch PATH="$scratch/bin:$PATH" CC=cc \
        sh -c 'mkdir() { echo went on; exit; }; . "$1"; echo went on' sh "$srcdir/$1" 2>&1
}

sourced tests/lib/tap.sh >"$scratch/said" && complain "exit status 0"
is "what tap.sh prints" "$(cat "$scratch/said")" \
    "Bail out! TMPDIR, or /tmp, must be a directory that this user can write to"
result "a test script ends, if mktemp makes no directory for it"

for script in tests/lib/server.sh tests/doc/page.sh; do
    sourced $script >"$scratch/said" && complain "$script: exit status 0"
    grep -q 'has to be sourced first' "$scratch/said" || complain "$script: $(cat "$scratch/said")"
done
result "a part of a test script ends, if it is started by itself"

(cd "$srcdir" && grep -rlF '$(mktemp' --include='*.sh' --exclude=test_scratch.sh tests bench examples debian) \
    >"$scratch/makers"
while read -r script; do
    sed -n 1,20p "$srcdir/$script" | grep -q '^set -eu' ||
        grep -nF '$(mktemp' "$srcdir/$script" | grep -v '|| ' | sed "s,^,$script:,"
done <"$scratch/makers" >"$scratch/complaints"
[ -s "$scratch/makers" ] || complain "no script calls mktemp"
result "each script that makes a directory ends if it cannot"

finish
