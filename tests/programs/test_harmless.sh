#!/bin/sh
# Programs under rules for other programs behave as without rules, under load and with another library preloaded.

. "$srcdir/tests/programs/lib.sh"
start_server
rules="sym:no-such-program:lock => no/symbol; off:no-such-program@build-id:00+0x10 => no/offset"
rules="$rules; shm:/no-such-memory+0x40 => no/shm; map:/no/such/file+0x40 => no/map"
rules="$rules; flock:/no/such/*.lock => no/flock; fcntl:/no/such/*.lock => no/fcntl"
DMUTEX_URL=$server_url
export DMUTEX_URL

# same PROGRAM FUNCTION: checks for the same output and exit status of the function, with and without the module in the
# programs that the function starts by `run`.
same()
{
    for with in no yes; do
        rm -f "$scratch"/socket "$scratch"/packed*
        begun=$(date +%s%N)
        "$2" >"$scratch/result.$with" 2>"$scratch/said.$with"
        echo "exit status $?" >>"$scratch/result.$with"
        note "$1: module: $with, $((($(date +%s%N) - begun) / 1000000)) ms"
    done
    cmp -s "$scratch/result.no" "$scratch/result.yes" && has "$scratch/result.yes" "exit status 0" || {
        diff "$scratch/result.no" "$scratch/result.yes" >>"$scratch/complaints"
        complain "$(cat "$scratch/result.yes" "$scratch/said.yes")"
    }
    result "$1 does the same with the module as without"
}
run() { (run_here "$@"); }
run_here()
{
    case $with in
        no) exec "$@" ;;
        yes) exec dmutex-run -q -e "$rules" -- "$@" ;;
    esac
}

# has_module PID: the process has the module if, and only if, the module is wanted.
has_module()
{
    has "/proc/$1/maps" libdmutex-preload.so && loaded=yes || loaded=no
    [ $loaded = $with ]
}

# serving COMMAND...: starts a server, as the process $served; stop: ends the server as an administrator would.
serving()
{
    run_here "$@" >"$scratch/served" 2>&1 &
    served=$!
}
stop()
{
    has_module "$served" || echo "the server has the module: $loaded"
    kill "$served"
    wait "$served"
}

# ---------------------------------------------------------------------------
memcached_under_load()
{
    serving memcached -u "$(id -un)" -t 4 -s "$scratch/socket"
    await [ -S "$scratch/socket" ]
    python3 "$srcdir/tests/programs/memcached_load.py" "$scratch/socket" 8 2000
    stop
}
same memcached memcached_under_load

# ---------------------------------------------------------------------------
cat "$server_program" "$srcdir"/libdmutex/*/*.c >"$scratch/data"
pack()
{
    run pigz -p 4 -n -c "$scratch/data" >"$scratch/packed" && sha256sum <"$scratch/packed" &&
        run pigz -p 4 -d -c "$scratch/packed" | cmp - "$scratch/data"
}
same pigz pack

# ---------------------------------------------------------------------------
# Only root can change the user, and apache2 must not serve as root.
mkdir "$scratch/www"
chmod 711 "$scratch"
cp "$srcdir/README.md" "$scratch/www/page"
port=$((20000 + $$ % 10000))
modules=$packages/usr/lib/apache2/modules
[ -d "$modules" ] || modules=/usr/lib/apache2/modules
cat >"$scratch/apache.conf" <<END
LoadModule mpm_worker_module $modules/mod_mpm_worker.so
LoadModule authz_core_module $modules/mod_authz_core.so
ServerName localhost
ServerRoot $scratch
DefaultRuntimeDir $scratch
PidFile $scratch/apache.pid
Mutex pthread
ErrorLog $scratch/apache.log
Listen 127.0.0.1:$port
User $([ "$(id -u)" -ne 0 ] && id -un || echo nobody)
Group $([ "$(id -u)" -ne 0 ] && id -gn || echo nogroup)
StartServers 2
ThreadsPerChild 8
MaxRequestWorkers 16
DocumentRoot $scratch/www
END
apache_serves() { ab -n 1 "http://127.0.0.1:$port/page" >/dev/null 2>&1; }
apache_under_load()
{
    serving apache2 -DFOREGROUND -f "$scratch/apache.conf"
    await apache_serves || cat "$scratch/served" "$scratch/apache.log" >&2
    run ab -q -n 5000 -c 16 "http://127.0.0.1:$port/page" | grep -E '^(Complete|Failed|Document Length|HTML)'
    stop
}
[ "$DMUTEX_TEST_HOSTS" != namespaces ] || ip link set lo up
same "apache2, with its worker" apache_under_load

# ---------------------------------------------------------------------------
redis_under_load()
{
    serving "$server_program" --port 0 --unixsocket "$scratch/socket" --io-threads 2 --save '' \
        --appendonly no --dir "$scratch"
    socket_server() { "${server_program%server}cli" -s "$scratch/socket" "$@"; }
    pings() { [ "$(socket_server ping 2>/dev/null)" = PONG ]; }
    await pings
    run "${server_program%server}benchmark" -s "$scratch/socket" -n 40000 -c 20 -P 4 -q -t incr,lpush --threads 2 >&2
    socket_server get counter:__rand_int__
    socket_server llen mylist
    stop
}
same redis-benchmark redis_under_load

# ---------------------------------------------------------------------------
# Without this capability, stress-ng cannot make its mutex threads real-time threads, which leave no processor to other
# processes.
ordinary=
[ "$(id -u)" -ne 0 ] || ordinary="setpriv --bounding-set -sys_nice"
stress()
{
    run $ordinary stress-ng --mutex 2 --flock 2 --lockf 2 --sem 2 --timeout 2s --verify --metrics-brief \
        --temp-path "$scratch" >"$scratch/stressed" 2>&1
    status=$?
    sed -n 's/.*\] *\(mutex\|flock\|lockf\|sem\) *\([0-9][0-9]*\) .*/stress-ng: \1: \2 operations/p' "$scratch/stressed" >>"$scratch/figures"
    grep -oE '(passed|failed|skipped): *[0-9]+' "$scratch/stressed" | tr -s ' '
    cat "$scratch/stressed" >&2
    return $status
}
same "stress-ng: mutex, flock, lockf and sem" stress
note "$(cat "$scratch/figures")"

# ---------------------------------------------------------------------------
threads() { run python3 "$srcdir/tests/programs/threads.py"; }
same python3 threads

jemalloc=$(find "$packages"/usr/lib /usr/lib -name libjemalloc.so.2 | head -n 1)
[ -n "$jemalloc" ] || complain "jemalloc is not there"
with_jemalloc()
{
    LD_PRELOAD=$jemalloc run python3 "$srcdir/tests/programs/threads.py" >"$scratch/with"
    status=$?
    grep -q jemalloc.so "$scratch/with" || echo "without jemalloc"
    cat "$scratch/with"
    return $status
}
same "python3 with jemalloc preloaded" with_jemalloc

finish
