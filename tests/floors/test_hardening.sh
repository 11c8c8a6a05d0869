#!/bin/sh
# What is installed has the protections that configure found, as readelf sees them. Speaks TAP.
# Run by `make check` in the build directory.

. "$srcdir/tests/lib/tap.sh"

programs="preload/.libs/dmutex-run preload/keeper/.libs/dmutex-keeper"
libraries="libdmutex/.libs/libdmutex.so preload/.libs/libdmutex-preload.so"

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

for file in $libraries $programs; do
    readelf -W -h -l -d -n --dyn-syms "$file" >"$scratch/elf" 2>"$scratch/errors" || complain "$file cannot be read"
    need "$file" -Wl,-z,relro "read-only relocations" 'GNU_RELRO'
    need "$file" -Wl,-z,now "binding at start" 'BIND_NOW|Flags:.* NOW'
    need "$file" -fstack-protector-strong "canary" '__stack_chk_fail'
    # the note of CET is the linker's, and needs it in libc's start files, too: look at the code
    ! asked -fcf-protection || objdump -d "$file" | grep -qE 'endbr(64|32)' || complain "$file: no landing pads of CET"
    need "$file" -Wl,-z,noexecstack "stack header" 'GNU_STACK'
    grep -E 'GNU_STACK.* RWE' "$scratch/elf" >>"$scratch/complaints"
    grep -E '\(RPATH\)|TEXTREL' "$scratch/elf" >>"$scratch/complaints"
    # libtool notes the library's folder in a program where the loader would not look
    grep -E '\(RUNPATH\)' "$scratch/elf" | grep -vF "[$LIBDIR]" >>"$scratch/complaints"
    result "$(basename "$file") has all that configure found"
done

for file in $programs; do
    readelf -W -h "$file" >"$scratch/elf"
    need "$file" -pie "position-independent code" 'Type: +DYN'
done
result "programs are position-independent"

for file in $libraries; do
    readelf -W --dyn-syms "$file" >"$scratch/elf"
    need "$file" -D_FORTIFY_SOURCE=2 "checked call of libc" '__[a-z]+_chk@'
done
result "calls of libc that know their buffer's size are checked"

finish
