#!/bin/sh
# <dmutex/pthread.h> forgets nothing of libc's mutexes and condition variables: the test takes the names
# from this machine's <pthread.h> at the time of the run. Speaks TAP.
#
# Run by `make check` in the build directory; srcdir, CC and SANITIZER_CFLAGS come from there.

. "$srcdir/tests/lib/tap.sh"
unmapped=$srcdir/tests/conformance/dropin/unmapped

# plain, mapped FLAGS...: the compiler on standard input, with libc's header or with ours.
plain() { $CC -x c -std=gnu11 -D_GNU_SOURCE -include pthread.h "$@" -; }
mapped() { $CC -x c -std=gnu11 -D_GNU_SOURCE -I"$srcdir/include" -include dmutex/pthread.h "$@" -; }

# expand COMMAND: each name and the expansion, one pair on a line.
expand()
{
    sed 's/.*/"&" &/' "$scratch/names" | "$1" -E -P | sed -n '/^"[a-zA-Z_]*" /p' | tr -d '"'
}

# reason NAME: why the name is not mapped; fails if the list does not have the name.
reason()
{
    while read -r pattern why; do
        case $pattern in
            '#'* | '') continue ;;
        esac
        case $1 in
            $pattern) echo "$why" && return ;;
        esac
    done <"$unmapped"
    return 1
}

# ---------------------------------------------------------------------------
# The names in the header, and the mapped names
# ---------------------------------------------------------------------------
{
    plain -E -P </dev/null
    plain -E -dM </dev/null
} >"$scratch/libc"
grep -oE '\b(pthread_(mutex|cond)(attr)?_[a-z0-9_]+|PTHREAD_[A-Z0-9_]+)' "$scratch/libc" | sort -u \
    >"$scratch/names"
expand plain >"$scratch/before"
expand mapped >"$scratch/after"
comm -13 "$scratch/before" "$scratch/after" | cut -d' ' -f1 >"$scratch/mapped"
comm -12 "$scratch/before" "$scratch/after" | cut -d' ' -f1 >"$scratch/kept"

# Names that the reading of the header must have found; else the reading has found nothing.
for name in pthread_mutex_t pthread_mutex_lock pthread_mutexattr_settype pthread_cond_timedwait \
    pthread_condattr_t PTHREAD_MUTEX_INITIALIZER PTHREAD_MUTEX_RECURSIVE; do
    grep -qx $name "$scratch/names" || echo "$name was not found"
done >"$scratch/complaints"
sort "$scratch/mapped" "$scratch/kept" | comm -3 - "$scratch/names" >>"$scratch/complaints"
result "the names of this machine's <pthread.h> are read"

while read -r name; do
    why=$(reason "$name") || why="not mapped, and unmapped does not say why"
    case $why in
        '') echo "$name: in unmapped, without a reason" ;;
        not\ mapped*) echo "$name: $why" ;;
    esac
done <"$scratch/kept" >"$scratch/complaints"
result "each of its names is mapped, or there is a reason why not"

while read -r name; do
    ! reason "$name" >/dev/null || echo "$name: mapped, and in unmapped"
done <"$scratch/mapped" >"$scratch/complaints"
result "what is mapped is not said to be left as it is"

# ---------------------------------------------------------------------------
# The targets of the names
# ---------------------------------------------------------------------------
grep ^pthread_ "$scratch/after" | sed 's/ *$//' >"$scratch/actual"
cut -d' ' -f1 "$scratch/actual" |
    sed 'h; s/^pthread_mutex/dmutex/; s/^pthread_cond/dcond/; s/_np$//
        s/^dmutexattr_setprotocol$/dmutex_private_setprotocol/; H; g; s/\n/ /' |
    diff - "$scratch/actual" >"$scratch/complaints"
result "each function and type is mapped to the one of its name"

grep ^pthread_ "$scratch/mapped" | awk '{ print "typedef __typeof__(" $1 ") *use_" NR ";" }' |
    mapped -fsyntax-only 2>"$scratch/complaints"
result "each function and type is mapped to one that is declared"

# libc's own declarations, read once more with the names mapped: types that differ are an error.
# Without the names in _np, which glibc declares a little otherwise than the later names.
plain -E -P </dev/null | tr '\n' ' ' | tr ';' '\n' |
    sed -n 's/__asm__ *([^)]*)//; s/.*\(extern int pthread_\(mutex\|cond\).*\)/\1;/p' |
    grep -v '_np *(' >"$scratch/declarations"
grep ^pthread_ "$scratch/names" | grep -v '_t$\|_np$' >"$scratch/functions"
[ "$(wc -l <"$scratch/declarations")" -eq "$(wc -l <"$scratch/functions")" ] ||
    echo "not all declarations were found" >"$scratch/complaints"
mapped -fsyntax-only <"$scratch/declarations" 2>>"$scratch/complaints"
result "the functions take and give what libc's take and give"

grep INITIALIZER "$scratch/mapped" |
    awk '{ print "static pthread_" (/COND/ ? "cond" : "mutex") "_t object_" NR " = " $1 ";" }' |
    mapped -fsyntax-only -Wall -Wextra -Wno-unused -Werror 2>"$scratch/complaints"
result "the initialisers initialise"

# libc's answer to each of libc's values, and ours: the same.
{
    echo 'int printf(const char *, ...);'
    echo 'int main(void) { pthread_mutexattr_t attr; pthread_mutexattr_init(&attr);'
    grep '^PTHREAD_MUTEX_' "$scratch/names" | grep -v INITIALIZER |
        sed 's/.*/printf("settype %s: %d\\n", "&", pthread_mutexattr_settype(\&attr, &));/
            /ROBUST\|STALLED/ s/settype/setrobust/g'
    echo 'return 0; }'
} >"$scratch/values"
libs="$SANITIZER_CFLAGS -Llibdmutex/.libs -Wl,-rpath,$PWD/libdmutex/.libs -ldmutex"
plain -o "$scratch/plain" <"$scratch/values" 2>>"$scratch/complaints"
$CC -x c -std=gnu11 -I"$srcdir/include" -include dmutex/pthread.h - -x none -o "$scratch/ours" $libs \
    <"$scratch/values" 2>>"$scratch/complaints"
"$scratch/plain" >"$scratch/said"
"$scratch/ours" | diff "$scratch/said" - >>"$scratch/complaints"
[ -s "$scratch/said" ] || echo "nothing was asked" >>"$scratch/complaints"
result "values of attributes are taken as libc takes them"

finish
