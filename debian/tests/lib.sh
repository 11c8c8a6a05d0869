# Sourced by the tests of the installed packages: a folder, and a server that ends with the test.

set -eu
scratch=$(mktemp -d)
server=
clean_up()
{
    [ -z "$server" ] || { kill "$server"; wait "$server" || :; }
    rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM
export XDG_CONFIG_HOME="$scratch/config"

fail()
{
    echo "FAILED: $*" >&2
    exit 1
}

# is WHAT VALUE EXPECTED
is() { [ "$2" = "$3" ] || fail "$1: $2, and not $3"; }

# await COMMAND...: runs the command again and again until success, for a minute at most.
await()
{
    for _ in $(seq 600); do
        ! "$@" || return 0
        sleep 0.1
    done
    fail "waited in vain: $*"
}

start_server()
{
    program=$(command -v redis-server || command -v valkey-server)
    "$program" --port 0 --unixsocket "$scratch/s" --save '' --appendonly no --maxmemory-policy noeviction \
        --dir "$scratch" --logfile "$scratch/log" &
    server=$!
    await test -S "$scratch/s"
    export DMUTEX_URL="unix://$scratch/s?grace=off"
}
