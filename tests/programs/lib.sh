# For the tests with programs of Debian: two hosts, a server, and functions that run programs there. Sourced in the
# build directory:
#
#     . "$srcdir/tests/programs/lib.sh"
#     start_hosts                     # a and b
#     start a flock "$(locks a)/x" cat fifo; holder=$started
#     on b dmutex-run -e "flock:$(locks b)/x => x" -- flock -n "$(locks b)/x" true
#
# The hosts are namespaces (network, mounts, host's name) with a private network, if the machine allows namespaces; else
# two trees of processes, with separate directories of lock files, separate keepers and other names.
# DMUTEX_TEST_HOSTS=trees chooses the trees.

# Begins again in namespaces: the network between the hosts ends with the last process there.
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

# The programs of Debian and of the build directory; nothing else.
packages=${DMUTEX_TEST_PACKAGES:?run by make check-programs}
build=$PWD
PATH=$build/preload/here:$packages/usr/sbin:$packages/usr/bin:$packages/sbin:$packages/bin
PATH=$PATH:/usr/sbin:/usr/bin:/sbin:/bin
LD_LIBRARY_PATH=$build/libdmutex/.libs
for directory in "$packages"/usr/lib/*-linux-gnu* "$packages"/lib/*-linux-gnu*; do
    [ ! -d "$directory" ] || LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$directory
done
DMUTEX_KEEPER=$build/preload/keeper/.libs/dmutex-keeper
HOME=$scratch # an empty configuration instead of the user's or the machine's
PYTHONPATH=$packages/usr/lib/python3/dist-packages
PYTHONDONTWRITEBYTECODE=1
mkdir -p "$HOME/.config/dmutex"
: >"$HOME/.config/dmutex/preload.conf"
export PATH LD_LIBRARY_PATH DMUTEX_KEEPER HOME PYTHONPATH PYTHONDONTWRITEBYTECODE

# ---------------------------------------------------------------------------
# Waiting
# ---------------------------------------------------------------------------
limit=60 # seconds, for each wait

# await COMMAND...: runs the command again and again until success.
await()
{
    for _ in $(seq $((limit * 20))); do
        "$@" && return
        sleep 0.05
    done
    complain "waited in vain: $*"
    return 1
}

# ended PID: the process is gone, or a zombie.
ended() { ! grep -qs '^State:[[:space:]]*[^ZX]' "/proc/$1/status" 2>/dev/null; }

# has FILE WORDS: a line of the file has the words.
has() { grep -qsF -e "$2" "$1"; }

# ---------------------------------------------------------------------------
# The server
# ---------------------------------------------------------------------------
server_program=${DMUTEX_TEST_SERVER:-$(command -v redis-server || command -v valkey-server)}
server_url=unix://$scratch/server?grace=off # no lock was held before the server's start

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

# held NAME, waiting NAME: the holder and the waiters in the server's view. A name is group/leaf.
held() { [ "$(server exists "dmutex:{${1%%/*}}:lock:${1#*/}")" = 1 ]; }
waiting() { server zcard "dmutex:{${1%%/*}}:queue:${1#*/}"; }
is_waited_for() { [ "$(waiting "$1")" -gt 0 ]; }
all_is_free() { [ -z "$(server keys 'dmutex:*:lock:*')" ]; }

# watch NAME: counts the server's grants of the name from now on; counted NAME: the count.
watch()
{
    server psubscribe "__keyspace@0__:dmutex:{${1%%/*}}:lock:${1#*/}" >"$scratch/watched.${1#*/}" 2>&1 &
    await has "$scratch/watched.${1#*/}" psubscribe
}
# A hold begins, or is confirmed, by hset and expire; without hset, expire hands the lock over.
counted()
{
    awk '/^(del|expired)$/ { is_held = 0 }
        /^hset$/ { count += !is_held; is_held = 1 }
        /^expire$/ && last != "hset" { count++ }
        /^(del|expired|hset|expire)$/ { last = $0 }
        END { print count + 0 }' "$scratch/watched.${1#*/}"
}

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

# make_host NAME NUMBER: starts a process that keeps the host's namespaces, with a private /run.
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

# locks HOST: the host's directory of lock files. The path is the same on both hosts, if hosts are namespaces.
locks()
{
    case $DMUTEX_TEST_HOSTS in
        namespaces) echo /run/lock ;;
        *) echo "$scratch/$1/locks" ;;
    esac
}

# become HOST COMMAND...: execs the command on the host. --root, because the tests may be in a chroot.
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

# on HOST COMMAND...: runs the command to the end. $HERE is the host's directory of lock files.
on() { (become "$@"); }

# start HOST COMMAND...: runs the command in the background, as the process $started, with the caller's standard input.
# A shell gives its input to a background command only through another descriptor.
start()
{
    (become "$@") <&4 4<&- &
    started=$!
} 4<&0

# both COMMAND...: runs the command on both hosts at once. The command prints "ready", and gets a byte when both have
# printed. The output is in $scratch/a/output and b/output.
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
# Jobs: the work of a program while the program holds a lock file
# ---------------------------------------------------------------------------
# $job is a script that reports to be inside, and stays inside until `leave`.
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

# rules HOST: gives each lock file in the host's directory the same name as on the other host.
rules()
{
    for file in "$(locks "$1")/*" "$(locks "$1")/*/*"; do
        printf 'flock:%s => jobs/%%b lease=%s; fcntl:%s => jobs/%%b lease=%s; ' "$file" $lease "$file" $lease
    done
}
lease=20s

# begin HOST COMMAND...: starts a command that gets inside; end HOST: the command leaves.
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

# Run the shell script $scratch/script on a host, under dmutex-run.
begin_with_rules() { begin "$1" dmutex-run -q -e "$(rules "$1")" -- sh "$scratch/script"; }
on_with_rules() { on "$1" dmutex-run -q -e "$(rules "$1")" -- sh "$scratch/script"; }

# locked PROGRAM WORDS: two results about a program that does not wait for a lock file. The shell script on standard
# input runs the program in $HERE. Without dmutex-run, the job runs on both hosts at once. With dmutex-run, the second
# program prints the words, or "exit status N", and gets inside after the first has left.
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
    await all_is_free # the keeper unlocks only after the kernel's unlock
    begin_with_rules b
    await is_inside "a b" || note "$(cat "$scratch/b/output")"
    end b
    result "$1: under dmutex-run, the second is refused until the first has left"
}
