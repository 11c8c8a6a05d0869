#!/bin/sh
# Keeps the documented rights true: with them all goes well, and without any one of them the library
# says which is missing. Speaks TAP. Run by `make check` in the build directory.

. "$srcdir/tests/lib/tap.sh"
. "$srcdir/tests/lib/server.sh"

# rights FILE: the words after ACL SETUSER app.
rights()
{
    sed -n '/ACL SETUSER app on/,/zcard/p; /zcard/q' "$1" | xargs | sed 's/^ACL SETUSER app //'
}

# as USER EXAMPLE MS: runs it as that user, with all that the library has to say.
as()
{
    DMUTEX_URL="unix://$1:secret@$scratch/s?command_timeout=$3" \
        DMUTEX_ONDOWN=fail DMUTEX_LOG=warn timeout 20 "examples/$2" 2>&1
}

all=$(rights "$srcdir/doc/guide/servers.md" 2>/dev/null)
rights "$srcdir/doc/man/dmutex.7" >"$scratch/page"
echo "$all" | diff - "$scratch/page" >"$scratch/complaints"
result "servers.md and dmutex(7) give the same rights"

# A user who has all, and for each right one who lacks it.
needed=$(echo "$all" | grep -oE '\+[a-z|]+' | tr -d +)
{
    printf 'user app %s\n' "$all"
    for right in $needed; do
        printf 'user no-%s %s -%s\n' "$(echo "$right" | tr '|' -)" "$all" "$right"
    done
    printf 'port 0\nunixsocket s\nsave ""\nmaxmemory-policy noeviction\nlogfile log\ndir %s\n' "$scratch"
} >"$scratch/conf"
start_server "$scratch/conf"

for example in robust timed recursive lostlease; do
    as app $example 2000 >"$scratch/output" || cat "$scratch/output" >>"$scratch/complaints"
    grep -E '^libdmutex.*(NOPERM|not permitted)' "$scratch/output" >>"$scratch/complaints"
done
result "with these rights the examples run, and nothing is refused"

# is_told RIGHT: the sentence about it is there.
is_told()
{
    grep -E 'NOPERM|not permitted' "$scratch/no-$1" | grep -qi "$(echo "$1" | tr - ' ')"
}

# lack RIGHT: an example that is over before the server has refused says nothing, and runs again.
lack()
{
    for try in 1 2 3 4 5; do
        as "no-$1" timed 1000 >"$scratch/no-$1"
        is_told "$1" && return
    done
}

# timed makes a thread wait; client|kill is used only after a broken connection. All run at once, because each
# waits until its time limit.
pids=
lacking=$(echo "$needed" | grep -v 'client|kill' | tr '|' -)
for right in $lacking; do
    lack "$right" &
    pids="$pids $!"
done
wait $pids
for right in $lacking; do
    is_told "$right" || { echo "without $right:"; cat "$scratch/no-$right"; } >>"$scratch/complaints"
done
result "without any one of them, the library says which is missing"

finish
