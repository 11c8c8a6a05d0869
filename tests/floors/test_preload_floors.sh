#!/bin/sh
# Guards the folders of preload/: the folders that each folder may include, no circular includes, headers that compile
# alone, and a module that needs only libc.  Speaks TAP.
#
# Run by `make check` in the build directory; srcdir, CC, NM and GLIB_CFLAGS come from there.

. "$srcdir/tests/lib/tap.sh"

# The folders, each with the folders below that its files may include.  doc/design/preload.md has the reasons.
cat >"$scratch/allowed" <<'END'
shared
module/base   shared
module/names  shared module/base dmutex
module/files  shared module/base
module/watch  shared module/base module/names module/files
module/hooks  shared module/base module/names module/files module/watch
observer      shared
run           shared dmutex
keeper        shared dmutex
END

# Files of the library that are compiled into the layer as well.
library_files='config/conffile.h base/file.h base/fileid.h base/output.h base/own_signal.h base/place.h base/relay.h'
library_files="$library_files base/shield.h base/stderr.h base/text.h"

# includes: each #include as FOLDER FILE LINE INCLUDED, with an include of the same folder spelled in full.
includes()
{
    (cd "$srcdir/preload" && find . -name '*.[ch]' | sed 's/^..//' | sort |
        xargs grep -nHE '^[[:space:]]*#[[:space:]]*include') | awk -F: '{
            file = folder = $1
            sub(/\/[^\/]*$/, "", folder)
            included = $0
            sub(/^[^<"]*[<"]/, "", included)
            sub(/[>"].*/, "", included)
            if (/"/ && included !~ /\//)
                included = folder "/" included
            print folder, file, $2, included
        }'
}

includes >"$scratch/includes"
awk -v library_files="$library_files" '
    function folder_of(path) { return sub(/\/[^\/]*$/, "", path) ? path : "" }
    function complain(why) { print $2 ":" $3 ": " $4 " " why }
    NR == FNR { known[$1]; for (i = 2; i <= NF; i++) allowed[$1, $i]; next }
    !($1 in known) { print $2 ": " $1 "/ is not one of the folders"; next }
    index(" " library_files " ", " " $4 " ") { next }
    {
        target = folder_of($4)
        if (target ~ /^(glib|gio|gobject)/ || $4 ~ /^g(lib|io)[.-]/)
            if ($1 != "run" && $1 != "keeper") complain("is glib, which is used in run/ and keeper/ only")
        if ($4 ~ /\.\.\//) complain("is not spelled as folder/file.h")
        if ($4 ~ /hiredis/) complain("is hiredis, which is for the library only")
        if (target ~ /^(base|config|core|store|stores|link|process|spawn|api)$/) complain("is of the library")
        if ((target in known || target == "dmutex") && target != $1 && !(($1, target) in allowed))
            complain("is not below " $1 "/")
    }' "$scratch/allowed" "$scratch/includes" >"$scratch/complaints"
result "includes of the preload layer go down: shared < base < names, files < watch < hooks"

# A header and the source of the same name are one; tsort names the members of each circle, and fails if there is one.
awk '{
    unit = $2; target = $4
    sub(/\.[ch]$/, "", unit); sub(/\.h$/, "", target)
    if (unit != target) print unit, target
}' "$scratch/includes" | tsort 2>"$scratch/complaints" >/dev/null
result "no file of the preload layer includes itself by way of others"

# dmutex show asks a keeper for its jobs, in the keeper's words.
(cd "$srcdir" && grep -nE '#[[:space:]]*include "(shared|module|observer|run|keeper)/' -- $(find libdmutex -name "*.[ch]") tools/*.c) |
    grep -v '^tools/keeper.c:[0-9]*:#include "shared/keeper_talk.h"$' |
    sed 's/$/ is of the preload layer/' >"$scratch/complaints"
result "the library and the tools include nothing of the preload layer but the words of a keeper"

(
    cd "$srcdir" || exit
    for file in $(find preload -name '*.[ch]' -o -name '*.map'); do
        grep -qF " $file" preload/local.mk preload/keeper/local.mk || echo "$file is in no local.mk"
    done
) >"$scratch/complaints"
result "each file of the preload layer is listed to be built or distributed"

# A wait on a condition may be cancelled with `sleeping` held, and takes care of that itself.
(cd "$srcdir/preload" && grep -nE 'real_get\(\)->mutex_lock\(&' $(find module -name '*.[ch]')) |
    grep -v '>sleeping)' | sed 's/$/ is not by own_lock()/' >"$scratch/complaints"
result "the module takes its own locks with cancellation off"

for header in $(cd "$srcdir/preload" && find . -name '*.h' | sort); do
    echo "#include \"${header#./}\"" |
        $CC -x c -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -fsyntax-only \
            -I"$srcdir/include" -I"$srcdir/libdmutex" -I"$srcdir/preload" $GLIB_CFLAGS - 2>>"$scratch/complaints" ||
        complain "$header does not compile alone"
done
result "each header of the preload layer compiles alone"

# ---------------------------------------------------------------------------
# The module as it is built
# ---------------------------------------------------------------------------
module=preload/.libs/libdmutex-preload.so
$NM -D --undefined-only "$module" |
    awk '$NF !~ /@(GLIBC_|GCC_)/ && $1 != "w" { print $NF " is not of libc" }' >"$scratch/complaints"
result "the module needs libc alone"

# A version here would keep a name from references to libc's versions of the name.
$NM -D --defined-only "$module" | awk '$NF ~ /@/ { print $NF " has a version" }' >"$scratch/complaints"
$NM -D --defined-only "$module" | grep -q ' pthread_mutex_lock$' || complain "pthread_mutex_lock is not exported"
result "the module's names have no version"

finish
