#!/bin/sh
# cron on two hosts: the daemon that holds the lock of /var/run/crond.pid runs the crontab; the other daemon is started
# again and again, as by systemd, and takes over when the holder is killed. `make check-long` waits for whole minutes,
# and checks for one job in each minute.

. "$srcdir/tests/programs/lib.sh"
start_hosts

is_long=${DMUTEX_TEST_LONG:-0}
rule="flock:/run/crond.pid => cron/daemon"

on a dmutex-run --dry-run -e "$rule" -- cron -f >"$scratch/said" 2>&1 || complain "$(cat "$scratch/said")"
! on a dmutex-run --dry-run -e "flock:crond.pid => cron/daemon" -- cron -f >"$scratch/said" 2>&1 ||
    complain "a rule that is no path is taken: $(cat "$scratch/said")"
result "cron can be run with a rule for its pid file"

# cron's paths are fixed: hosts without a private /run share a pid file.
if [ "$DMUTEX_TEST_HOSTS" != namespaces ]; then
    note "the rest only where hosts can be namespaces"
    finish
fi

# Hides the machine's crontabs, so that cron runs only the test's crontab.
for host in a b; do
    nsenter --target "$(cat "$scratch/$host/pid")" --mount --root env --chdir=/ sh -c '
        mount -t tmpfs tmpfs /var/spool && mkdir -p /var/spool/cron/crontabs || exit
        for directory in /etc/cron.*; do
            [ ! -d "$directory" ] || mount -t tmpfs tmpfs "$directory" || exit
        done
        [ ! -e /etc/crontab ] || mount --bind /dev/null /etc/crontab || exit
        umask 077
        echo "* * * * * $1" >/var/spool/cron/crontabs/root' \
        sh "echo \"\$(date +\\%H:\\%M) \$(hostname)\" >>'$scratch/jobs'" || complain "host $host is not prepared"
done
if [ -s "$scratch/complaints" ]; then
    result "the machine's own crontabs are hidden from the two hosts"
    finish
fi
: >"$scratch/jobs"
mkdir "$scratch/bin"
cat >"$scratch/bin/again" <<'END'
#!/bin/sh
while :; do
    "$@"
    sleep 0.2
done
END

# crons HOST: the process that holds the lock on the host. A cron without the lock writes no pid.
crons()
{
    pid=$(on "$1" cat /run/crond.pid 2>/dev/null) && [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = cron ] &&
        grep -qszxF "DMUTEX_HOST=$1" "/proc/$pid/environ" && echo "$pid"
}
runs() { [ -n "$(crons "$1")" ]; }

# stop_cron HOST: kills the command begun on the host, and the cron that the command has started.
stop_cron()
{
    kill -9 "$(cat "$scratch/$1/begun")"
    wait "$(cat "$scratch/$1/begun")"
    pid=$(crons "$1") && kill -9 "$pid" && await ended "$pid"
}

# minutes COUNT: waits for COUNT whole minutes, from the next minute's beginning; prints the number of jobs in each
# minute.
minutes()
{
    first=$(date -d '+1 minute' +%H:%M)
    last=$(date -d "+$(($1 + 1)) minutes" +%H:%M)
    until [ "$(date +%H:%M)" = "$last" ]; do
        sleep 1
    done
    sed -n "/^$first/,\$p" "$scratch/jobs" | grep -v "^$last" | cut -d' ' -f1 | uniq -c | tr -s ' '
}
per_minute() { minutes "$1" | cut -d' ' -f2 | xargs; }

# ---------------------------------------------------------------------------
for host in a b; do
    begin $host cron -f
done
await runs a
await runs b
if [ "$is_long" = 1 ]; then
    is "jobs in a minute" "$(per_minute 1)" 2
fi
for host in a b; do
    stop_cron $host
done
result "two hosts do not exclude each other by themselves"

# ---------------------------------------------------------------------------
begin a dmutex-run -e "$rule" -- cron -f
await runs a
on b dmutex-run -e "$rule" -- cron -f >"$scratch/refused" 2>&1
has "$scratch/refused" "can't lock /var/run/crond.pid" || complain "$(cat "$scratch/refused")"
! runs b || complain "cron runs on b"
result "under dmutex-run, the second is refused"

# ---------------------------------------------------------------------------
begin b sh "$scratch/bin/again" dmutex-run -q -e "$rule" -- cron -f
await has "$scratch/b/output" "can't lock"
if [ "$is_long" = 1 ]; then
    is "jobs in each of three minutes" "$(per_minute 3)" "1 1 1"
    is "done by" "$(tail -n 1 "$scratch/jobs" | cut -d' ' -f2)" a
fi
! runs b || complain "cron runs on b"
stop_cron a
await runs b
if [ "$is_long" = 1 ]; then
    is "jobs in each of two minutes" "$(per_minute 2)" "1 1"
    is "done by" "$(tail -n 1 "$scratch/jobs" | cut -d' ' -f2)" b
fi
result "the other one takes over when cron is killed"
note "$(cat "$scratch/jobs")"
stop_cron b

finish
