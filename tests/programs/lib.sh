# For the tests with programs of Debian: two hosts, a server, and words to run programs there. Sourced
# in the build directory:
#
#     . "$srcdir/tests/programs/lib.sh"
#     start_hosts                     # a and b
#     start a flock "$(locks a)/x" cat fifo; holder=$started
#     on b dmutex-run -e "flock:$(locks b)/x => x" -- flock -n "$(locks b)/x" true
#
# The hosts are namespaces (network, mounts, host's name) with a network of their own, where this
# machine lets us make them; else two trees of processes, with directories of lock files and keepers of
# their own, and other names. DMUTEX_TEST_HOSTS=trees asks for the latter.

# Begins again in namespaces: the network between the hosts ends with the last process in it.
if [ -z "${DMUTEX_TEST_HOSTS-}" ]; then
    DMUTEX_TEST_HOSTS=trees
    export DMUTEX_TEST_HOSTS
    if unshare --mount --net --uts true 2>/dev/null; then
        DMUTEX_TEST_HOSTS=namespaces
        exec unshare --mount --net --uts sh "$0" "$@"
    fi
fi

srcdir=$(cd "$srcdir" && pwd) # commands run elsewhere
. "$srcdir/tests/lib/tap.sh"
setsid sh "$srcdir/tests/programs/vanish.sh" $$ "$scratch" </dev/null >/dev/null 2>&1 &
DMUTEX_TEST_MARK=$scratch
export DMUTEX_TEST_MARK

# The programs of Debian, and what was built here; nothing else.
packages=${DMUTEX_TEST_PACKAGES:?run by make check-programs}
build=$PWD
PATH=$build/preload/here:$packages/usr/sbin:$packages/usr/bin:$packages/sbin:$packages/bin
PATH=$PATH:/usr/sbin:/usr/bin:/sbin:/bin
LD_LIBRARY_PATH=$build/libdmutex/.libs
for directory in "$packages"/usr/lib/*-linux-gnu* "$packages"/lib/*-linux-gnu*; do
    [ ! -d "$directory" ] || LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$directory
done
DMUTEX_KEEPER=$build/preload/keeper/.libs/dmutex-keeper
HOME=$scratch # no configuration of the user's or the machine's, but an empty one
PYTHONPATH=$packages/usr/lib/python3/dist-packages
PYTHONDONTWRITEBYTECODE=1
mkdir -p "$HOME/.config/dmutex"
: >"$HOME/.config/dmutex/preload.conf"
export PATH LD_LIBRARY_PATH DMUTEX_KEEPER HOME PYTHONPATH PYTHONDONTWRITEBYTECODE

# ---------------------------------------------------------------------------
# Waiting
# ---------------------------------------------------------------------------
limit=60 # seconds for anything that is waited for

# await COMMAND...: until it succeeds.
await()
{
    for _ in $(seq $((limit * 20))); do
        "$@" && return
        sleep 0.05
    done
    complain "waited in vain: $*"
    return 1
}

# ended PID: it is there no more, or has only not been waited for.
ended() { ! grep -qs '^State:[[:space:]]*[^ZX]' "/proc/$1/status" 2>/dev/null; }

# has FILE WORDS: in one of its lines.
has() { grep -qsF -e "$2" "$1"; }

# ---------------------------------------------------------------------------
# The server
# ---------------------------------------------------------------------------
server_program=${DMUTEX_TEST_SERVER:-$(command -v redis-server || command -v valkey-server)}
server_url=unix://$scratch/server?grace=off # nobody had a lock before it was started

server() { "$(dirname "$server_program")/$(basename "$server_program" server)cli" -s "$scratch/server" "$@"; }
is_serving() { [ "$(server ping 2>/dev/null)" = PONG ]; }

start_server()
{
    case $DMUTEX_TEST_HOSTS in
        namespaces) set -- --bind 10.99.0.1 --port 6379 --protected-mode no ;;
        *) set -- --port 0 ;;
    esac
    "$server_program" "$@" --unixsocket "$scratch/server" --save '' --appendonly no \
        --dir "$scratch" --notify-keyspace-events Kgh </dev/null >"$scratch/server.log" 2>&1 &
    await is_serving || cat "$scratch/server.log" >>"$scratch/complaints"
}

# held NAME, waiting NAME: as the server believes. A name is group/leaf.
held() { [ "$(server exists "dmutex:{${1%%/*}}:lock:${1#*/}")" = 1 ]; }
waiting() { server zcard "dmutex:{${1%%/*}}:queue:${1#*/}"; }
is_waited_for() { [ "$(waiting "$1")" -gt 0 ]; }
all_is_free() { [ -z "$(server keys 'dmutex:*:lock:*')" ]; }

# watch NAME: counts from now on how often the server gives it to somebody; counted NAME.
watch()
{
    server psubscribe "__keyspace@0__:dmutex:{${1%%/*}}:lock:${1#*/}" >"$scratch/watched.${1#*/}" 2>&1 &
    await has "$scratch/watched.${1#*/}" psubscribe
}
counted() { grep -xE 'hset|del|expired' "$scratch/watched.${1#*/}" | uniq | grep -cx hset; } # a hold may be confirmed once more

# ---------------------------------------------------------------------------
# Hosts
# ---------------------------------------------------------------------------
# start_hosts: the server and the hosts a and b.
start_hosts()
{
    if [ "$DMUTEX_TEST_HOSTS" = namespaces ] && ! make_network; then
        DMUTEX_TEST_HOSTS=trees
    fi
    start_server
    number=1
    for host in a b; do
        number=$((number + 1))
        mkdir -p "$scratch/$host/locks" "$scratch/$host/keeper"
        chmod 700 "$scratch/$host/keeper"
        [ "$DMUTEX_TEST_HOSTS" != namespaces ] || make_host $host $number
    done
    [ "$DMUTEX_TEST_HOSTS" != namespaces ] || server_url=redis://10.99.0.1:6379?grace=off
    note "two hosts: $DMUTEX_TEST_HOSTS"
}

make_network()
{
    ip link set lo up && ip link add hosts type bridge && ip addr add 10.99.0.1/24 dev hosts &&
        ip link set hosts up
} >"$scratch/network.log" 2>&1

# make_host NAME NUMBER: a process keeps its namespaces. It has a /run of its own.
make_host()
{
    unshare --mount --net --uts sh -c '
        hostname "$1" && mount -t tmpfs tmpfs /run && mkdir -m 1777 /run/lock && ip link set lo up &&
            echo $$ >"$2" && exec sleep infinity' sh "$1" "$scratch/$1/pid" &
    await [ -s "$scratch/$1/pid" ]
    ip link add "link-$1" type veth peer name eth0 netns "$(cat "$scratch/$1/pid")" &&
        ip link set "link-$1" master hosts up &&
        nsenter --target "$(cat "$scratch/$1/pid")" --net sh -c "
            ip addr add 10.99.0.$2/24 dev eth0 && ip link set eth0 up" || complain "host $1 cannot be made"
}

# locks HOST: its directory of lock files. Of the same name on both, if they are namespaces.
locks()
{
    case $DMUTEX_TEST_HOSTS in
        namespaces) echo /run/lock ;;
        *) echo "$scratch/$1/locks" ;;
    esac
}

# become HOST COMMAND...: this process, with exec. --root: all may be in a chroot.
become()
{
    host=$1
    shift
    set -- env --chdir="$scratch/$host" DMUTEX_URL="$server_url" DMUTEX_HOST="$host" DMUTEX_LOCAL_DIR="$scratch/$host/keeper" \
        HERE="$(locks "$host")" JOB="$job" "$@"
    [ "$DMUTEX_TEST_HOSTS" != namespaces ] ||
        set -- nsenter --target "$(cat "$scratch/$host/pid")" --mount --net --uts --root "$@"
    exec "$@"
}

# on HOST COMMAND...: to its end. $HERE is the host's directory of lock files.
on() { (become "$@"); }

# start HOST COMMAND...: in the background, as the process $started. Its standard input is this one,
# which a shell does not give to what runs in the background unless it is asked for by another number.
start()
{
    (become "$@") <&4 4<&- &
    started=$!
} 4<&0

# both COMMAND...: on both hosts at once. It prints "ready", and gets a byte when both have. What
# it prints is in $scratch/a/output and b/output.
both()
{
    for host in a b; do
        start $host "$@" <&3 >"$scratch/$host/output" 2>&1
        echo "$started" >"$scratch/$host/started"
    done
    for host in a b; do
        await has "$scratch/$host/output" ready
    done
    echo . >&3
    for host in a b; do
        wait "$(cat "$scratch/$host/started")" || complain "$host: exit status $?: $(cat "$scratch/$host/output")"
    done
}
mkfifo "$scratch/starter"
exec 3<>"$scratch/starter"

# ---------------------------------------------------------------------------
# Jobs: what a program does while it has its lock file
# ---------------------------------------------------------------------------
# $job is a script that says that it is inside, and stays there until it is told to leave.
job=$scratch/job
cat >"$job" <<END
#!/bin/sh
echo "\$DMUTEX_HOST" >>'$scratch/inside'
read -r leave <"$scratch/\$DMUTEX_HOST.leave"
END
chmod 755 "$job"

inside() { sort "$scratch/inside" 2>/dev/null | xargs; }
is_inside() { [ "$(inside)" = "$1" ]; }
outside()
{
    rm -f "$scratch/inside" "$scratch/a.leave" "$scratch/b.leave"
    mkfifo "$scratch/a.leave" "$scratch/b.leave"
    exec 5<>"$scratch/a.leave" 6<>"$scratch/b.leave"
}
leave()
{
    case $1 in
        a) echo >&5 ;;
        b) echo >&6 ;;
    esac
}

# rules HOST: each lock file in its directory is called as on the other host.
rules()
{
    for file in "$(locks "$1")/*" "$(locks "$1")/*/*"; do
        printf 'flock:%s => jobs/%%b lease=%s; fcntl:%s => jobs/%%b lease=%s; ' "$file" $lease "$file" $lease
    done
}
lease=20s

# begin HOST COMMAND...: one that is to get inside; end HOST: it leaves.
begin()
{
    at=$1
    start "$@" >"$scratch/$at/output" 2>&1
    echo "$started" >"$scratch/$at/begun"
}
end()
{
    leave "$1"
    wait "$(cat "$scratch/$1/begun")" || complain "$1: exit status $?: $(cat "$scratch/$1/output")"
}

# The shell script at $scratch/script there, under dmutex-run.
begin_with_rules() { begin "$1" dmutex-run -q -e "$(rules "$1")" -- sh "$scratch/script"; }
on_with_rules() { on "$1" dmutex-run -q -e "$(rules "$1")" -- sh "$scratch/script"; }

# locked PROGRAM WORDS: two results about a program that does not wait for its lock file. The shell
# script on standard input runs it in $HERE. Without dmutex-run, the job runs on both hosts at once. With
# it, who comes second says the words, or "exit status N", and gets inside when the first has left.
locked()
{
    cat >"$scratch/script"
    outside
    begin a sh "$scratch/script"
    begin b sh "$scratch/script"
    await is_inside "a b" || note "$(cat "$scratch/a/output" "$scratch/b/output")"
    end a
    end b
    result "$1: two hosts do not exclude each other by themselves"

    outside
    begin_with_rules a
    await is_inside a || note "$(cat "$scratch/a/output")"
    on_with_rules b >"$scratch/refused" 2>&1
    echo "exit status $?" >>"$scratch/refused"
    has "$scratch/refused" "$2" || complain "it did not say '$2': $(cat "$scratch/refused")"
    is "inside, when the second has come" "$(inside)" a
    end a
    await all_is_free # the keeper gives back what it sees the kernel has let go
    begin_with_rules b
    await is_inside "a b" || note "$(cat "$scratch/b/output")"
    end b
    result "$1: under dmutex-run, the second is refused until the first has left"
}
