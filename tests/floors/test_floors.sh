#!/bin/sh
# Guards the boundaries between the rooms: who may include what, that each header compiles alone, and that
# the library exports what the public headers declare, and no more. Speaks TAP.
#
# Run by `make check` in the build directory; srcdir, CC, CXX, NM, HIREDIS_CFLAGS and
# PACKAGE_VERSION come from there.

. "$srcdir/tests/lib/tap.sh"

# includes: each #include of the library and its public headers, as grep -n prints it.
includes()
{
    (cd "$srcdir/libdmutex" && grep -rnE --include='*.[ch]' '^[[:space:]]*#[[:space:]]*include' -- *)
    (cd "$srcdir/include" && grep -nE '^[[:space:]]*#[[:space:]]*include' -- dmutex/*.h)
}

# as_triples: the same as FILE LINE INCLUDED, both files spelled as the compiler finds them:
# base/clock.h, dmutex/types.h, glib.h.
as_triples()
{
    awk -F: '{
        file = $1
        included = $0
        sub(/^[^<"]*[<"]/, "", included)
        sub(/[>"].*/, "", included)
        if (/"/ && included !~ /\//) {
            room = file
            sub(/[^\/]*$/, "", room)
            if (included != "config.h")
                included = room included
        }
        print file, $2, included
    }'
}

# The rooms, from the ground up. A folder is a room of its own if it is named here; else it belongs to the folder above.
rooms="base config core store registers link stores/redis/wire stores/redis/sentinel stores/redis/node stores/redis/cluster
stores/redis stores/redis/registers stores/quorum stores/postgres stores/etcd stores/zookeeper stores/memcached stores/mariadb stores spawn process process/claims process/calls process/keep process/life names api"

# Of awk: the height of the room of a path; 1 is base, 0 is none.
heights='BEGIN {
        floors = split(rooms, order)
        for (i = 1; i <= floors; i++)
            height[order[i]] = i
    }
    function height_of(path) {
        while (sub(/\/[^\/]*$/, "", path))
            if (path in height)
                return height[path]
        return 0
    }
'

# complain_about PROGRAM: an awk program over the triples sees file, line, included, and the heights of both rooms as
# floor and target: 1 is base, 0 is none.
complain_about()
{
    awk -v rooms="$rooms" "$heights"'
    function complain(why) { print file ":" line ": <" included "> " why }
    {
        file = $1; line = $2; included = $3
        floor = height_of(file); target = height_of(included)
    }'"$1" "$scratch/includes" >"$scratch/complaints"
}

# compile NAME FLAGS...: complains unless the header NAME compiles as the only one of a unit.
compile()
{
    header=$1
    shift
    echo "#include <$header>" |
        "$@" -Wall -Wextra -Werror -fsyntax-only -I"$srcdir/include" - 2>>"$scratch/complaints" ||
        echo "$header does not compile alone" >>"$scratch/complaints"
}

# ---------------------------------------------------------------------------
# Includes
# ---------------------------------------------------------------------------
includes | as_triples >"$scratch/includes"

complain_about 'floor && target > floor { complain("is on a higher floor") }
    !floor && target { complain("is not public") }
    included ~ /\.\.\// { complain("is not spelled as room/file.h") }'
result "includes go down, from room to room"

complain_about 'included ~ /^(glib|gio|gobject)[.\/-]/ {
        if (file !~ /^process\/(keep\/loop|claims\/registry)\.c$/)
            complain("is glib, which is used in loop.c and registry.c only")
        uses[file]
    }
    END {
        if (!("process/keep/loop.c" in uses && "process/claims/registry.c" in uses))
            print "loop.c and registry.c do not both include glib: the rule is out of date"
    }'
result "glib is included in two files of process/ only"

complain_about 'included ~ /hiredis/ && file !~ /^(link|stores\/redis)\// {
        complain("is hiredis, which is used in link/ and stores/redis/ only") }'
result "hiredis is included in link/ and stores/redis/ only"

complain_about 'included ~ /^openssl\// && file !~ /^link\/tls(_errors|_files|_words)?\.c$/ {
        complain("is OpenSSL, which is used in tls.c, tls_errors.c, tls_files.c and tls_words.c only") }'
result "OpenSSL is included in four files of link/ only"

complain_about 'included ~ /^libpq/ && file != "stores/postgres/parts.h" {
        complain("is libpq, which is used in stores/postgres/ only") }'
result "libpq is included in stores/postgres/ only"

complain_about 'included ~ /^(mysql|mysqld_error|errmsg)\.h$/ && file !~ /^stores\/mariadb\// {
        complain("is libmariadb, which is used in stores/mariadb/ only") }'
result "libmariadb is included in stores/mariadb/ only"

complain_about 'floor == height["link"] && target && target != floor && target != height["base"] {
        complain("is of the locks, which link/ does not know") }'
result "link/ includes base/ and itself only"

# A file of link/ includes only files that precede it in the list of link.h.
complain_about 'function part_of(path) { sub(/.*\//, "", path); sub(/(_parts)?\.[ch]$/, "", path); return path }
    BEGIN {
        parts = split("command tls_errors tls_files tls_words tls tls_calls tls_bound tls_load tls_inside tls_module tls_none stream address race dial reader pipe retry identify greeter prepare session session_close session_greet session_open link turns", list, " ")
        for (i = 1; i <= parts; i++)
            place[list[i]] = i
    }
    floor == height["link"] && !place[part_of(file)] { complain("is in a file without a place in link/") }
    floor == height["link"] && target == floor && place[part_of(included)] > place[part_of(file)] {
        complain("stands behind the file that includes it") }'
result "the files of link/ include in one direction"

# Of the files of a session, session.c is the highest, and its header the lowest.
(
    cd "$srcdir/libdmutex/link" || exit
    awk 'function part_of(path) { sub(/\.c$/, "", path); return path }
        BEGIN {
            parts = split("command tls_errors tls_files tls_words tls tls_calls tls_bound tls_load tls_inside tls_module tls_none stream address race dial reader pipe retry identify prepare session_close session_greet session_open session link turns", list, " ")
            for (i = 1; i <= parts; i++)
                place[list[i]] = i
        }
        FNR == 1 { reading += FILENAME == ARGV[1] }
        reading == 1 && /^[a-zA-Z].*dm_[a-z0-9_]+\(/ && !/;$/ {
            match($0, /dm_[a-z0-9_]+\(/)
            name = substr($0, RSTART, RLENGTH)
            if (!(name in home) && FILENAME != "tls_module.c") # which has names of base/, for the module
                home[name] = part_of(FILENAME) # the first of tls_inside.c, tls_load.c and tls_none.c
        }
        reading == 2 && FNR == 1 && !place[part_of(FILENAME)] { print FILENAME " has no place in link/" }
        reading == 2 && /^    / {
            for (rest = $0; match(rest, /dm_[a-z0-9_]+\(/); rest = substr(rest, RSTART + RLENGTH)) {
                called = substr(rest, RSTART, RLENGTH)
                if (called in home && place[home[called]] > place[part_of(FILENAME)])
                    print FILENAME ":" FNR ": " called ") is of " home[called] ".c, which stands behind"
            }
        }' *.c *.c
) >"$scratch/complaints"
result "the files of link/ call in one direction"

complain_about 'file !~ /^(link|stores)\// && included ~ /^(link|stores)\// {
        complain("is behind the wall: include store/store.h") }
    file ~ /^stores\// && included ~ /^stores\// {
        kind = file; sub(/^stores\//, "", kind); sub(/\/.*/, "", kind)
        if (file != "stores/stores.c" && included !~ "^stores/" kind "/")
            complain("is of another store") }'
result "a store is known by store/ alone"

complain_about 'included == "store/drivers.h" && file !~ /^stores\// && file != "process/life/runtime.c" {
        complain("is for the file that opens a store") }'
result "one file names the stores that there are"

(cd "$srcdir/libdmutex" &&
    grep -nE '(\<redis[A-Z]|\<freeReply|\<REDIS_[A-Z])' -r base config core store stores/quorum spawn process names api) \
    >"$scratch/complaints"
result "names of hiredis appear in link/ and stores/redis/ only"

complain_about 'floor == height["core"] && included ~ /^(pthread|time)\.h$/ {
        complain("is not for core/, which has neither threads nor a clock") }'
result "core/ includes neither <pthread.h> nor <time.h>"

# A claim has its hold in the member `hold`, and a function of the outside a pointer of that name.
(cd "$srcdir/libdmutex" &&
    grep -nE '(->|\.)?\<hold(\.|->)[a-z_.]+ *(=[^=]|\+\+|--|[-+|&]=)' -r config store link stores spawn process names api) \
    >"$scratch/complaints"
result "core/ alone writes the fields of a hold"

# ---------------------------------------------------------------------------
# Calls, and variables
# ---------------------------------------------------------------------------
# symbols: FILE TYPE NAME for each global symbol of each object that the library is made of; FILE is the source.
symbols()
{
    for object in $(find libdmutex -path '*/.libs/*_la-*.o' ! -name 'libdmutex_tls_la-*' ! -name 'store_postgres_la-*' ! -name 'store_mariadb_la-*'); do
        source=$(echo "$object" | sed 's,/\.libs/[a-z_]*_la-,/,; s,\.o$,.c,; s,^libdmutex/,,')
        [ -e "$srcdir/libdmutex/$source" ] || [ -e "libdmutex/$source" ] || continue # of an older tree
        $NM -P "$object" | awk -v file="$source" '$2 ~ /^[TDBRVCU]$/ { print file, $2, $1 }'
    done
}
symbols >"$scratch/symbols"
[ "$(cut -d' ' -f1 "$scratch/symbols" | sort -u | wc -l)" -gt 100 ] || complain "fewer than 100 objects were found"

# uses: FILE OTHER NAME, for each use of a name of the other file.  A name in two files is of the one for tests.
awk 'NR == FNR { if ($2 != "U" && !($3 in home)) home[$3] = $1; next }
    $2 == "U" && $3 in home && home[$3] != $1 { print $1, home[$3], $3 }' \
    "$scratch/symbols" "$scratch/symbols" | sort -u >"$scratch/uses"

awk -v rooms="$rooms" "$heights"'
    height_of($2) > height_of($1) { print $1 " uses " $3 " of " $2 ", which is above it" }' \
    "$scratch/uses" >"$scratch/complaints"
result "calls go down, from room to room"

# tsort names the members of each circle, and fails if there is one.
awk '{ print $1, $2 }' "$scratch/uses" | tsort 2>"$scratch/complaints" >/dev/null
result "no file calls itself by way of others"

# tsort names the members of each loop, and fails if there is one.
awk '$1 ~ /\.h$/ { print $1, $3 }' "$scratch/includes" | tsort 2>"$scratch/complaints" >/dev/null
result "no header includes itself by way of others"

(
    cd "$srcdir" || exit
    for file in include/dmutex/*.h $(find libdmutex -name "*.[ch]" -o -name "*.lua"); do
        grep -qF " $file" libdmutex/local.mk || echo "$file is not in libdmutex/local.mk"
    done
) >"$scratch/complaints"
result "each file of the library is listed to be built or distributed"

# cmocka 2 has a macro stop(), and warns of assert_in_range and its relatives; tests/lib/range.h is for both versions.
(cd "$srcdir" && grep -nE '\<(assert|expect)_(not_)?in_(range|set)\>|\<stop *\(' examples/*.c tests/[!s]*/*.[ch] tests/server/*.[ch]) \
    >"$scratch/complaints"
result "tests use no word that cmocka 2 takes or warns of"

# In a localized program these translate, and libc may load a library for that: another thread's dlopen() is waited for,
# perhaps under a lock.  dm_text_error() and strerrordesc_np() do not.
(cd "$srcdir" && grep -rnE '(^|[^>_a-z])(strerror(_[rl])?|gai_strerror|strsignal|perror|psignal|d?c?n?gettext)\(' \
    libdmutex preload/module preload/shared --include='*.c') >"$scratch/complaints"
result "nothing that runs in a program translates"

# ---------------------------------------------------------------------------
# Each header compiles alone
# ---------------------------------------------------------------------------
for standard in c89 c99 c11; do
    : >"$scratch/complaints"
    for header in "$srcdir"/include/dmutex/*.h; do
        compile "dmutex/${header##*/}" $CC -x c -std=$standard -pedantic-errors
    done
    result "each public header compiles alone in $standard"
done

for standard in c++98 c++17; do
    [ -n "$CXX" ] || continue
    : >"$scratch/complaints"
    for header in "$srcdir"/include/dmutex/*.h; do
        compile "dmutex/${header##*/}" $CXX -x c++ -std=$standard -pedantic-errors
    done
    result "each public header compiles alone in $standard"
done

for standard in c++11 c++14 c++17 c++20; do
    [ -n "$CXX" ] || continue
    : >"$scratch/complaints"
    compile dmutex/dmutex.hpp $CXX -x c++ -std=$standard -pedantic-errors -Wall -Wextra -Wshadow -Werror
    result "<dmutex/dmutex.hpp> compiles alone in $standard"
done

: >"$scratch/complaints"
for header in $(cd "$srcdir/libdmutex" && find . -name '*.h' | sed 's,^\./,,'); do
    case $header in
        link/* | stores/redis/*) library_cflags=$HIREDIS_CFLAGS ;;
        stores/postgres/parts.h) [ -n "$LIBPQ_CFLAGS" ] || continue; library_cflags=$LIBPQ_CFLAGS ;;
        stores/mariadb/parts.h) [ -n "$LIBMARIADB_CFLAGS" ] || continue; library_cflags=$LIBMARIADB_CFLAGS ;;
        *) library_cflags= ;;
    esac
    compile "$header" \
        $CC -x c -std=gnu11 -D_GNU_SOURCE -I. -I"$srcdir/libdmutex" $library_cflags
done
result "each internal header compiles alone"

# ---------------------------------------------------------------------------
# What the library shows
# ---------------------------------------------------------------------------
for header in "$srcdir"/include/dmutex/*.h; do
    echo "#include <dmutex/${header##*/}>"
done | $CC -E -P -x c -D_GNU_SOURCE -I"$srcdir/include" - | grep -v '^static ' |
    grep -oE '\b(dmutex|dcond)[a-z]*_[a-z0-9_]+ *\(' | tr -d ' (' | sort -u >"$scratch/declared"
$NM -D --defined-only libdmutex/.libs/libdmutex.so |
    awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u >"$scratch/exported"
{
    comm -23 "$scratch/declared" "$scratch/exported" | sed 's/$/ is declared and not exported/'
    comm -13 "$scratch/declared" "$scratch/exported" | sed 's/$/ is exported and not declared/'
} >"$scratch/complaints"
result "the library exports what the public headers declare"

# Of another version in the process, the loader would give us the functions.
$NM -D --undefined-only libdmutex/.libs/libdmutex.so |
    awk '{ sub(/@.*/, "", $NF); print $NF }' | grep -E '^(redis|freeReply|sds|hi_|SSL_|X509_|EVP_|BIO_|ERR_)' |
    sed 's/$/ is taken from whatever library has it/' >"$scratch/complaints"
result "the library takes nothing of hiredis or OpenSSL from the process"

# Otherwise only the first connection by TLS would show it: a module may use symbols that nobody defines.
if [ -e libdmutex/.libs/libdmutex-tls.so ]; then
    $NM -D --undefined-only libdmutex/.libs/libdmutex-tls.so | grep -oE '\<dm_.*' |
        sed 's/$/ is not in the module: see tls_module.c/' >"$scratch/complaints"
    result "the module of TLS has all that it calls of ours"
fi
if [ -e libdmutex/.libs/store-postgres.so ]; then
    $NM -D libdmutex/.libs/store-postgres.so | grep -oE '\<dm_.*' | grep -vxE "dm_postgres_(open|examine)" |
        sed 's/$/ is not for the module: see stores\/postgres\/module.c/' >"$scratch/complaints"
    result "the module of PostgreSQL has all that it calls of ours, and shows two functions"
fi
if [ -e libdmutex/.libs/store-mariadb.so ]; then
    $NM -D libdmutex/.libs/store-mariadb.so | grep -oE '\<dm_.*' | grep -vxE "dm_mariadb_(open|examine)" |
        sed 's/$/ is not for the module: see stores\/mariadb\/module.c/' >"$scratch/complaints"
    result "the module of MariaDB has all that it calls of ours, and shows two functions"
fi

echo '#include <dmutex/version.h>
DMUTEX_VERSION_STRING DMUTEX_VERSION_MAJOR.DMUTEX_VERSION_MINOR.DMUTEX_VERSION_MICRO' |
    $CC -E -P -x c -I"$srcdir/include" - | tail -n 1 | tr -d ' ' >"$scratch/version"
if [ "$(cat "$scratch/version")" = "\"$PACKAGE_VERSION\"$PACKAGE_VERSION" ]; then
    : >"$scratch/complaints"
else
    echo "version.h: $(cat "$scratch/version"), package: $PACKAGE_VERSION" >"$scratch/complaints"
fi
result "the headers and the package have one version"

finish
