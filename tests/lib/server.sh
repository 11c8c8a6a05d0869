# Sourced after tap.sh by scripts that start a server: without a server program the script is skipped.
#
#     . "$srcdir/tests/lib/server.sh"
#     start_server "$scratch/conf" ...      # $scratch/s is its socket; it ends with the script

: "${scratch:?is set by tests/lib/tap.sh, which has to be sourced first}"
server=${DMUTEX_TEST_SERVER:-$(command -v redis-server || command -v valkey-server)}
if [ -z "$server" ]; then
    echo "1..0 # SKIP neither redis-server nor valkey-server is installed"
    exit 0
fi
if ! command -v "$server" >/dev/null; then
    echo "Bail out! $server, which configure found, is gone: run configure again, in the build directory"
    exit 1
fi
server_pid=
end_server()
{
    [ -z "$server_pid" ] || { kill "$server_pid"; wait "$server_pid"; }
    rm -rf "$scratch"
}
trap end_server EXIT

# start_server ARGUMENTS...: of the server, which listens at $scratch/s.
start_server()
{
    "$server" "$@" &
    server_pid=$!
    until [ -S "$scratch/s" ] || ! kill -0 $server_pid 2>/dev/null; do
        sleep 0.1
    done
}
