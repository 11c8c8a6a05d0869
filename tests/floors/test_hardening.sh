#!/bin/sh
# What `make install` installs has the protections that configure found, as readelf sees them. Speaks TAP.
# Run by `make check` in the build directory.

. "$srcdir/tests/lib/tap.sh"

# asked FLAG: configure found it.
asked()
{
    case " $HARDENING_FLAGS " in
    *" $1 "*) true ;;
    *) false ;;
    esac
}

# need FILE FLAG WHAT PATTERN: if configure found the flag, what readelf says has the pattern.
need()
{
    if asked "$2" && ! grep -qE "$4" "$scratch/elf"; then
        complain "$1: no $3, though configure found $2"
    fi
}

# Every program has main; every library of ours has one of the other functions.
begins_with_landing_pads()
{
    objdump -d "$1" | grep -A1 -E '<(main|dmutex_lock|pthread_mutex_lock|open|dm_tls_module_begin|dm_postgres_open|dm_mariadb_open)>:' | grep -qE 'endbr(64|32)'
}

# With the flag, calls with a format are always checked; the observer has none, and none with a buffer of known size.
look_at_calls()
{
    asked -D_FORTIFY_SOURCE=2 || return
    grep -oE ' (v?[fd]?printf|v?syslog)@' "$scratch/elf" | while read -r call; do complain "$1 calls ${call%@}, unchecked"; done
    [ "$1" = libdmutex-observer.so ] || need "$1" -D_FORTIFY_SOURCE=2 "checked call of libc" '__[a-z]+_chk@'
}

# libc loads libgcc_s.so.1 when a thread is cancelled or ended, and ends the program where an image has only what ldd shows.
look_at_threads()
{
    grep -oE ' pthread_(cancel|exit)@' "$scratch/elf" | while read -r call; do complain "$1 calls ${call%@}"; done
}

# look FILE: all that readelf says of it, for each property.
look()
{
    name=$(basename "$1")
    readelf -W -h -l -d --dyn-syms "$1" >"$scratch/elf" 2>"$scratch/errors" || complain "$name cannot be read"
    need "$name" -Wl,-z,relro "read-only relocations" 'GNU_RELRO'
    need "$name" -Wl,-z,now "binding at start" 'BIND_NOW|Flags:.* NOW'
    need "$name" -fstack-protector-strong "canary" '__stack_chk_fail'
    need "$name" -pie "position-independent code" 'Type: +DYN'
    need "$name" -Wl,-z,noexecstack "stack header" 'GNU_STACK'
    # the note of CET is the linker's, and needs it in libc's start files, too: look at the code
    ! asked -fcf-protection || begins_with_landing_pads "$1" || complain "$name: no landing pads of CET"
    look_at_calls "$name"
    look_at_threads "$name"
    grep -E 'GNU_STACK.* RWE|\(RPATH\)|TEXTREL' "$scratch/elf" >>"$scratch/complaints"
    # libtool notes the library's folder in a program where the loader would not look
    grep -E '\(RUNPATH\)' "$scratch/elf" | grep -vF "[$LIBDIR]" >>"$scratch/complaints"
    result "$name has all that configure found"
}

# The jobs of the make that runs the tests are not this one's.
env -u MAKEFLAGS -u MFLAGS make install DESTDIR="$scratch/root" >"$scratch/install" 2>&1 ||
    complain "make install: $(tail -n 3 "$scratch/install")"
find "$scratch/root" -type f | sort | while read -r file; do
    [ "$(head -c 4 "$file" | tail -c 3)" != ELF ] || echo "$file"
done >"$scratch/files"
for name in dmutex-keeper dmutex-names dmutex-run libdmutex-observer.so libdmutex-preload.so libdmutex.so; do
    grep -q "/$name[.0-9]*\$" "$scratch/files" || complain "$name is not installed"
done
result "programs, library and modules are installed"

while read -r file; do
    look "$file"
done <"$scratch/files"

finish
