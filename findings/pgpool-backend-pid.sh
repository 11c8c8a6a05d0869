#!/bin/sh
# Pgpool-II: pg_backend_pid() is the number of another process than the one that has the session's advisory lock.
#
# Expected: a client of Pgpool-II has one session, which pg_backend_pid() names: with this number the session is found in
#   pg_locks and pg_stat_activity, and others see whether it lives.
# Found: pg_try_advisory_lock() is executed on the primary, and pg_backend_pid(), by itself, on the standby that takes the
#   session's reads.  The number is not in pg_stat_activity of the primary, where the lock is.  Both in one statement give
#   the right one.
# Where: Pgpool-II 4.3.5, streaming replication with load_balance_mode (the default), PostgreSQL 15.18.  What has a volatile
#   function goes to the primary; pg_backend_pid() is a stable one.  The server for the reads is chosen at random for each
#   session, with the weights 0 and 1 here, so that it is the standby.
# Why it matters: a lock in a table that names its owner by this number is taken for that of a dead one, in some sessions.
#   The comparison with the process that the server named when it greeted, which gives pgbouncer away, fails in those as well.

. "$(dirname "$0")/lib.sh"

start_postgres pgpool2=4.3.5-1+deb12u1 libpgpool2=4.3.5-1+deb12u1 libmemcached11=1.1.4-1 libhashkit2=1.1.4-1
standby=$scratch/standby
mkdir "$standby"
[ "$(id -u)" != 0 ] || chown nobody:nogroup "$standby"
$other "$bin/pg_basebackup" -h "$postgres" -U postgres -D "$standby/data" -R -c fast >"$scratch/log" 2>&1 ||
    give_up "pg_basebackup: $(tail -n 1 "$scratch/log")"
$other "$bin/postgres" -D "$standby/data" -k "$standby" -c listen_addresses= >"$scratch/standby.log" 2>&1 &
servers="$! $servers"
wait_for "$bin/psql" -h "$standby" -U postgres -c 'SELECT 1'

port=$((20000 + $$ % 10000))
cat >"$standby/pgpool.conf" <<END
listen_addresses = '127.0.0.1'
port = $port
socket_dir = '$standby'
pcp_socket_dir = '$standby'
pcp_port = $((port + 1))
pid_file_name = '$standby/pgpool.pid'
logdir = '$standby'
sr_check_user = 'postgres'
sr_check_database = 'postgres'
backend_hostname0 = '$postgres'
backend_port0 = 5432
backend_weight0 = 0
backend_hostname1 = '$standby'
backend_port1 = 5432
backend_weight1 = 1
END
: >"$standby/none"
libraries=$debian/usr/lib/$(uname -m)-linux-gnu
$other env LD_LIBRARY_PATH="$libraries" "$debian/usr/sbin/pgpool" -n -f "$standby/pgpool.conf" -a "$standby/none" \
    -F "$standby/none" >"$scratch/pgpool.log" 2>&1 &
servers="$! $servers"
wait_for "$bin/psql" -h 127.0.0.1 -p "$port" -U postgres -c 'SELECT 1'
LD_LIBRARY_PATH="$libraries" "$debian/usr/sbin/pgpool" --version

cat >"$scratch/session.sql" <<'END'
\t on
\a
SELECT pg_try_advisory_lock(7) AS locked \gset
SELECT pg_backend_pid() AS alone \gset
SELECT pg_backend_pid() AS beside, pg_try_advisory_lock(8) \gset
SELECT pid AS holder FROM pg_locks WHERE locktype = 'advisory' AND objid = 7 \gset
\echo locked: :locked
SELECT 'pg_backend_pid() alone is the holder in pg_locks: ' || (:alone = :holder);
SELECT 'pg_backend_pid() beside a volatile function is it: ' || (:beside = :holder);
SELECT 'sessions of the primary with the number of pg_backend_pid() alone: ' || count(*)
    FROM pg_stat_activity WHERE pid = :alone;
END
for title in "PostgreSQL itself" "through Pgpool-II"; do
    echo "$title"
    case $title in
    *itself) "$bin/psql" -X -q -h "$postgres" -U postgres -f "$scratch/session.sql" ;;
    *) "$bin/psql" -X -q -h 127.0.0.1 -p "$port" -U postgres -f "$scratch/session.sql" ;;
    esac | sed 's/^/  /'
done >"$scratch/said"

check "$scratch/said" <<'END'
PostgreSQL itself
  locked: t
  pg_backend_pid() alone is the holder in pg_locks: true
  pg_backend_pid() beside a volatile function is it: true
  sessions of the primary with the number of pg_backend_pid() alone: 1
through Pgpool-II
  locked: t
  pg_backend_pid() alone is the holder in pg_locks: false
  pg_backend_pid() beside a volatile function is it: true
  sessions of the primary with the number of pg_backend_pid() alone: 0
END
