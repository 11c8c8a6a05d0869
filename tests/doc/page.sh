# Sourced by the tests that run the guide's pages, after tap.sh.
#
#     run_pages ' cmake ' porting     runs doc/guide/porting.md, with the blocks that need cmake
#
# Each page runs in its own folder and shell: the shell of `./quickstart shell`, with a private server and the
# programs of the build directory.  Pages run at once.

# Without a scratch directory, the files below would be written over the programs in /bin.
: "${scratch:?is set by tests/lib/tap.sh, which has to be sourced first}"
sources=$(cd "$srcdir" && pwd)
guide=$sources/doc/guide
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
[ ! -x "${server%-server}-cli" ] || wrap redis-cli "${server%-server}-cli"
PATH=$scratch/bin:$PATH
export PATH
unset CC CXX CFLAGS LDFLAGS LIBS MAKEFLAGS MAKELEVEL DMUTEX_URL

# quickstart, in a tree that is built already, with the shell as the only word.
{ sed '/^word=/,$d' "$sources/quickstart"; echo 'build() { :; }; shell'; } >"$scratch/quickstart"
ln -s "$PWD" "$scratch/build"
ln -s "$sources/doc" "$scratch/doc"

# The head of each page's script.
cat >"$scratch/head" <<'HEAD'
#!/bin/sh
set -eu
cd "$PAGE_FOLDER/work"
: >"$PAGE_FOLDER/begun"
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

# One page, as if typed in the shell, in the folder `work`.
run_page()
{
    page=$1
    PAGE_FOLDER=$scratch/$page
    PAGE_SCRIPTS=$scripts
    DMUTEX_LOCAL_DIR=$PAGE_FOLDER/local
    SHELL=$PAGE_FOLDER/script
    export PAGE_FOLDER PAGE_SCRIPTS DMUTEX_LOCAL_DIR SHELL
    mkdir -p "$PAGE_FOLDER/work"
    mkdir -m 700 "$DMUTEX_LOCAL_DIR"
    { cat "$scratch/head"; awk -v needs="$2" -f "$scripts/page.awk" "$guide/$page.md"; } >"$PAGE_FOLDER/script"
    chmod +x "$PAGE_FOLDER/script"
    timeout -k 5 600 sh "$scratch/quickstart" >"$PAGE_FOLDER/output" 2>&1
    [ $? -ne 124 ] || echo "the page did not end" >>"$PAGE_FOLDER/complaints"
    [ -e "$PAGE_FOLDER/begun" ] || echo "the page did not begin" >>"$PAGE_FOLDER/complaints"
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
