#!/bin/sh
# memcached and pigz have been stripped of symbols: rules name the mutexes by the build-id and the offset in the file,
# as `dmutex-run --list` has found in this run.

. "$srcdir/tests/programs/lib.sh"
start_hosts
load=$srcdir/tests/programs/memcached_load.py

# serve HOST COMMAND...: starts memcached by the command, at $scratch/HOST/memcached, as the process $started.
serve()
{
    at=$1
    shift
    rm -f "$scratch/$at/memcached"
    start "$at" "$@" memcached -u "$(id -un)" -t 4 -s "$scratch/$at/memcached" >"$scratch/$at/served" 2>&1
    await [ -S "$scratch/$at/memcached" ]
}

# stop PID: ends the server as an administrator would.
stop()
{
    kill "$1"
    await ended "$1"
    wait "$1" || complain "exit status $?: $(cat "$scratch"/?/served)"
}

# hold NAME: holds a lock file of host b, with the mutex's name, until `end b`.
hold()
{
    outside
    begin b dmutex-run -e "flock:$(locks b)/holder => $1" -- flock "$(locks b)/holder" "$job"
    await is_inside b
}

# ---------------------------------------------------------------------------
# memcached
# ---------------------------------------------------------------------------
# Finds the mutex with one lock for each request that changes the data.
serve a dmutex-run --list --output "$scratch/list" --
is "the number" "$(python3 "$load" "$scratch/a/memcached" 1 1776)" 1776
stop "$started"
rule=$(sed -n 's/^ *1778  //p' "$scratch/list")
note "memcached: $rule"
case $rule in
    off:memcached@build-id:*+0x*) ;;
    *) complain "$(head -n 20 "$scratch/list")" ;;
esac
result "memcached: dmutex-run --list finds the mutex that each change needs"

serve a dmutex-run -e "$rule => memcached/change" --
server_of_a=$started
serve b dmutex-run -e "$rule => memcached/change" --
server_of_b=$started
watch memcached/change
for host in a b; do
    python3 "$load" "$scratch/$host/memcached" 4 250 >"$scratch/$host/number" 2>&1 &
    echo $! >"$scratch/$host/started"
done
for host in a b; do
    wait "$(cat "$scratch/$host/started")"
    is "the number of $host" "$(cat "$scratch/$host/number")" 1000
done
# on each host: a lock for the added number, 1000 for the changes, and 1 for the change by 0
is "locks, on the server" "$(counted memcached/change)" 2004
result "memcached: two hosts under load, and each lock was the server's"

hold memcached/change
python3 "$load" "$scratch/a/memcached" 1 1 >"$scratch/a/number" 2>&1 &
client=$!
await is_waited_for memcached/change
[ ! -s "$scratch/a/number" ] || complain "it has answered: $(cat "$scratch/a/number")"
end b
wait "$client"
is "the number" "$(cat "$scratch/a/number")" 1001
stop "$server_of_a"
stop "$server_of_b"
result "memcached: a change on one host waits for a holder on the other"

# ---------------------------------------------------------------------------
# pigz
# ---------------------------------------------------------------------------
head -c 8000000 "$server_program" >"$scratch/data"
cat "$srcdir"/libdmutex/*/*.c >>"$scratch/data"
pigz -p 4 -c -n "$scratch/data" >"$scratch/right"

# Lists until a thread has waited on a condition variable, which depends on the threads' order.
lists_condition()
{
    on a dmutex-run --list --output "$scratch/list" -- pigz -p 4 -c -n "$scratch/data" >"$scratch/a/packed" &&
        cmp "$scratch/right" "$scratch/a/packed" >>"$scratch/complaints" 2>&1 &&
        has "$scratch/list" " cond:off:pigz@build-id:"
}
await lists_condition || complain "$(cat "$scratch/list")"
mutex=$(sed -n 's/^ *[0-9]*  \(off:pigz@build-id:.*\)/\1/p' "$scratch/list" | head -n 1)
condition=$(sed -n 's/^ *[0-9]*  \(cond:off:pigz@build-id:.*\)/\1/p' "$scratch/list" | head -n 1)
note "pigz: $mutex $condition"
result "pigz: dmutex-run --list finds a mutex and its condition variable"

rules="$mutex => pigz/threads; $condition => pigz/ended"
watch pigz/threads
for host in a b; do
    start $host dmutex-run -e "$rules" -- pigz -p 4 -c -n "$scratch/data" >"$scratch/$host/packed" 2>"$scratch/$host/said"
    echo "$started" >"$scratch/$host/started"
done
for host in a b; do
    wait "$(cat "$scratch/$host/started")" || complain "$host: exit status $?"
    cmp "$scratch/right" "$scratch/$host/packed" >>"$scratch/complaints" 2>&1
    cat "$scratch/$host/said" >>"$scratch/complaints"
done
[ "$(counted pigz/threads)" -ge 8 ] || complain "the server has seen $(counted pigz/threads) locks"
result "pigz: the same output on two hosts, and the locks were the server's"

hold pigz/threads
start a dmutex-run -e "$rules" -- pigz -p 4 -c -n "$scratch/data" >"$scratch/a/packed"
await is_waited_for pigz/threads
! ended "$started" || complain "pigz has ended"
end b
wait "$started"
cmp "$scratch/right" "$scratch/a/packed" >>"$scratch/complaints" 2>&1
result "pigz: one host waits for a holder on the other"

finish
