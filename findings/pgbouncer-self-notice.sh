#!/bin/sh
# pgbouncer, transaction mode: a NOTIFY to oneself arrives, and those of all others never do.
#
# Expected: a program that wants to know whether LISTEN works behind a pooler listens, notifies itself and waits.  If
#   its own notice comes, others will come, too.
# Found: LISTEN succeeds, the program's own notice comes at once, and no notice of another session ever comes, neither
#   by itself nor with the answer to a later statement.  In session mode both come.
# Where: pgbouncer 1.18.0, PostgreSQL 15.18.  The server sends a session its own notice before it says that the
#   statement is finished, so the pooler passes it on with the answer.  Those of others come while no client is linked to
#   the server's process, and are dropped.
# Why it matters: locks, queues and caches wait for such notices.  With the test a program takes itself for able to
#   wait for one, and then sleeps until it times out.  What does tell is that pg_backend_pid() is not the process that
#   the server named when it greeted (PQbackendPID() of libpq): a pooler invents that one.

. "$(dirname "$0")/lib.sh"

need setpriv
start_postgres pgbouncer=1.18.0-1+deb12u1
bouncer=$debian/usr/sbin/pgbouncer
"$bouncer" --version | head -n 1

# start_bouncer MODE: on the socket of a folder of that name.
start_bouncer()
{
    folder=$postgres/$1
    mkdir "$folder"
    cat >"$folder/ini" <<END
[databases]
* = host=$postgres
[pgbouncer]
unix_socket_dir = $folder
listen_port = 6432
auth_type = trust
auth_file = $folder/users
pool_mode = $1
END
    echo '"postgres" ""' >"$folder/users"
    [ "$(id -u)" != 0 ] || chown -R nobody:nogroup "$folder"
    $other "$bouncer" -q "$folder/ini" >"$folder/log" 2>&1 &
    servers="$! $servers"
    wait_for "$bin/psql" -h "$folder" -p 6432 -U postgres -c 'SELECT 1'
}

# listen TITLE HOST PORT: psql tells of notices after each statement.
listen()
{
    echo "$1"
    "$bin/psql" -X -q -A -t -h "$2" -p "$3" -U postgres <<END | sed -n 's/.*payload "\(.*\)" received.*/  notice: \1/p; s/^now/  now/p'
LISTEN jobs;
NOTIFY jobs, 'from myself';
\! '$bin/psql' -X -q -h '$postgres' -U postgres -c "NOTIFY jobs, 'from another'"
SELECT pg_sleep(0.5);
SELECT 'now a later statement';
END
}

start_bouncer session
start_bouncer transaction
{
    listen "without pgbouncer" "$postgres" 5432
    listen "pgbouncer, session mode" "$postgres/session" 6432
    listen "pgbouncer, transaction mode" "$postgres/transaction" 6432
} >"$scratch/said"

check "$scratch/said" <<'END'
without pgbouncer
  notice: from myself
  notice: from another
  now a later statement
pgbouncer, session mode
  notice: from myself
  notice: from another
  now a later statement
pgbouncer, transaction mode
  notice: from myself
  now a later statement
END
