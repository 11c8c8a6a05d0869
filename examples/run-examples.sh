#!/bin/sh
# Runs the examples on a private server; the exit status of each must say that its claims
# are true. Speaks TAP. Run by `make check` in the build directory.

set -u
examples="counter robust timed recursive lostlease fencing queue rendezvous ported demo"
# a test program, built only with cmocka
[ ! -x examples/ledger_test ] || examples="$examples ledger_test"
# built only with libpq; starts PostgreSQL
[ ! -x examples/version_column ] || ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || examples="$examples version_column"
# built only with libmariadb; this script starts MariaDB
[ ! -x examples/version_column_mariadb ] || [ ! -x /usr/sbin/mariadbd ] || ! command -v mariadb-install-db >/dev/null ||
    examples="$examples version_column_mariadb"
# in C++, compiled here
[ -z "${CXX-}" ] || examples="$examples guarded"

if [ -n "${DMUTEX_TEST_SERVER-}" ]; then
    PATH=$(dirname "$DMUTEX_TEST_SERVER"):$PATH
elif ! command -v redis-server >/dev/null && ! command -v valkey-server >/dev/null; then
    echo "1..0 # SKIP neither redis-server nor valkey-server is installed"
    exit 0
fi

# The first example that locks starts the server; the end of this script stops it.
DMUTEX_LOCAL_DIR=$(mktemp -d) || exit 1
export DMUTEX_LOCAL_DIR PATH
mariadb=
clean_up()
{
    pid=$(cat "$DMUTEX_LOCAL_DIR/pid" 2>/dev/null)
    [ -z "$pid" ] || kill "$pid"
    # A zombie has ended. It stays if process 1 of the container does not reap orphans.
    while [ -n "$pid" ] && grep -qs '^State:[[:space:]]*[^ZX]' "/proc/$pid/status"; do
        sleep 0.1
    done
    [ -z "$mariadb" ] || kill "$mariadb"
    [ -z "$mariadb" ] || wait "$mariadb"
    rm -rf "$DMUTEX_LOCAL_DIR"
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

guarded()
{
    $CXX -std=c++11 -pthread ${SANITIZER_CFLAGS-} -I"$srcdir/include" -o "$DMUTEX_LOCAL_DIR/guarded" \
        "$srcdir/examples/guarded.cc" -Llibdmutex/.libs -ldmutex &&
        LD_LIBRARY_PATH=libdmutex/.libs "$DMUTEX_LOCAL_DIR/guarded"
}

# On a MariaDB of its own, which clean_up() ends. A new one has a database `test`.
version_column_mariadb()
{
    data=$DMUTEX_LOCAL_DIR/mariadb
    export TMPDIR="$DMUTEX_LOCAL_DIR" # a server that starts deletes the temporary tables of others there
    small="--no-defaults --datadir=$data --user=$(id -un) --innodb-log-file-size=4M --innodb-buffer-pool-size=8M"
    mariadb-install-db $small --auth-root-authentication-method=normal >/dev/null || return
    /usr/sbin/mariadbd $small --socket="$data/socket" --skip-networking --pid-file="$data/pid" >"$data/log" 2>&1 &
    mariadb=$!
    printf '[client]\nsocket=%s\nuser=root\n' "$data/socket" >"$data/.my.cnf"
    # The file of the process number comes when the server can be asked.
    while [ ! -e "$data/pid" ]; do
        kill -0 "$mariadb" || { cat "$data/log"; return 1; }
        sleep 0.1
    done
    HOME=$data examples/version_column_mariadb test
}

# run EXAMPLE: most examples are programs; `ported` is two programs and a script.
run()
{
    case $1 in
        guarded | version_column_mariadb) "$1" ;;
        ported) sh "$srcdir/examples/ported/show.sh" examples/ported ;;
        *) "examples/$1" ;;
    esac
}

tests=0
for example in $examples; do
    tests=$((tests + 1))
    if run "$example" >"$DMUTEX_LOCAL_DIR/output" 2>&1; then
        echo "ok $tests - $example"
    else
        echo "not ok $tests - $example"
    fi
    sed 's/^/# /' "$DMUTEX_LOCAL_DIR/output"
done
echo "1..$tests"
