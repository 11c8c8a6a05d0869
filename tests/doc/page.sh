# Sourced by the tests that run the guide's pages, behind tap.sh.
#
#     run_pages ' cmake ' porting     runs doc/guide/porting.md, with the blocks that need cmake
#
# Each page has a folder, a private server, and the programs of the build directory in its PATH.  Pages run at once.

build=$PWD
guide=$(cd "$srcdir/doc/guide" && pwd)
scripts=$(cd "$srcdir/tests/doc" && pwd)
server=${DMUTEX_TEST_SERVER:-$(command -v redis-server || command -v valkey-server)}
if [ -z "$server" ]; then
    echo "1..0 # SKIP neither redis-server nor valkey-server is installed"
    exit 0
fi

# wrap NAME COMMAND: makes the program NAME of a page, which runs the command.
wrap()
{
    printf '#!/bin/sh\nexec %s "$@"\n' "$2" >"$scratch/bin/$1"
    chmod +x "$scratch/bin/$1"
}

mkdir "$scratch/bin"
wrap cc "$CC"
wrap redis-server "$server"
[ ! -x "${server%-server}-cli" ] || cli=${server%-server}-cli
# the pages' server listens where each page's variable says, and not at the usual port
wrap redis-cli "${cli:-redis-cli} -s \"\$PAGE_SOCKET\""
for program in tools/dmutex tools/dmutex-names preload/here/dmutex-run; do
    wrap "${program##*/}" "$build/$program"
done
PATH=$scratch/bin:$PATH
PKG_CONFIG_PATH=$build # dmutex-uninstalled.pc
LD_LIBRARY_PATH=$build/libdmutex/.libs
DMUTEX_KEEPER=$build/preload/keeper/dmutex-keeper
export PATH PKG_CONFIG_PATH LD_LIBRARY_PATH DMUTEX_KEEPER
unset CC CXX CFLAGS LDFLAGS LIBS MAKEFLAGS MAKELEVEL

# The head of each page's script.
cat >"$scratch/head" <<'HEAD'
set -eu
said=$PAGE_FOLDER/said
at() { line=$1; }
complain() { echo "$*" >>"$PAGE_FOLDER/complaints"; }
expect()
{
    cat >"$PAGE_FOLDER/expected"
    awk -f "$PAGE_SCRIPTS/match.awk" "$PAGE_FOLDER/expected" "$said" ||
        complain "line $line: the page has: $(cat "$PAGE_FOLDER/expected") -- and the output is: $(cat "$said")"
}
trap '[ $? -eq 0 ] || complain "line $line: the commands fail"' EXIT
HEAD

# The server of one page; the page itself, in the folder `work`.
run_page()
{
    page=$1
    PAGE_FOLDER=$scratch/$page
    PAGE_SOCKET=$PAGE_FOLDER/s
    PAGE_SCRIPTS=$scripts
    DMUTEX_LOCAL_DIR=$PAGE_FOLDER/local
    DMUTEX_URL="unix://$PAGE_SOCKET?grace=off"
    export PAGE_FOLDER PAGE_SOCKET PAGE_SCRIPTS DMUTEX_LOCAL_DIR DMUTEX_URL
    mkdir -p "$PAGE_FOLDER/work"
    mkdir -m 700 "$DMUTEX_LOCAL_DIR"
    "$server" --port 0 --unixsocket "$PAGE_SOCKET" --save '' --appendonly no --maxmemory-policy noeviction \
        --dir "$PAGE_FOLDER" --logfile "$PAGE_FOLDER/log" &
    pid=$!
    until [ -S "$PAGE_SOCKET" ] || ! kill -0 $pid; do
        sleep 0.02
    done
    { cat "$scratch/head"; awk -v needs="$2" -f "$scripts/page.awk" "$guide/$page.md"; } >"$PAGE_FOLDER/script"
    (cd "$PAGE_FOLDER/work" && timeout -k 5 120 sh "$PAGE_FOLDER/script" >"$PAGE_FOLDER/output" 2>&1)
    [ $? -ne 124 ] || echo "the page did not end" >>"$PAGE_FOLDER/complaints"
    kill $pid
    wait $pid
}

# run_pages NEEDS PAGE...: all at once, one result each.
run_pages()
{
    needs=$1
    shift
    for page; do
        run_page "$page" "$needs" &
    done
    wait
    for page; do
        if [ -s "$scratch/$page/complaints" ]; then
            cat "$scratch/$page/complaints" >>"$scratch/complaints"
            tail -n 20 "$scratch/$page/output" >>"$scratch/complaints"
        fi
        result "doc/guide/$page.md: the commands and programs have the described effect"
    done
}
