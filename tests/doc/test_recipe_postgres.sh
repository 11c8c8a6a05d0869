#!/bin/sh
# The recipes of doc/guide/postgres.md, with a private server, the database "locks" and the role "app". Speaks TAP.
#
# Run by `make check` in the build directory, if configure has found libpq.

. "$srcdir/tests/lib/tap.sh"
. "$srcdir/tests/doc/page.sh"

bin=$(command -v initdb || ls /usr/lib/postgresql/*/bin/initdb | tail -n 1)
bin=${bin%/initdb}
as_other=
if [ "$(id -u)" = 0 ]; then # PostgreSQL refuses root
    as_other="setpriv --reuid nobody --regid nogroup --clear-groups"
    chmod 755 "$scratch"
fi
database=$scratch/database
mkdir "$database"
[ -z "$as_other" ] || chown nobody:nogroup "$database"
cd "$database"
$as_other "$bin/initdb" -D "$database/data" -A trust -U postgres --no-sync >"$scratch/initdb.log" 2>&1 ||
    sed 's/^/# /' "$scratch/initdb.log"
$as_other "$bin/pg_ctl" -D "$database/data" -o "-k $database -c listen_addresses= -c fsync=off" -l "$database/log" -w start \
    >"$scratch/start.log"
cd - >/dev/null

export PGHOST="$database" PGUSER=postgres
psql -q -d postgres -c 'CREATE DATABASE locks' -c 'CREATE ROLE app LOGIN'
run_pages ' postgres ' postgres

# The epoch's row was changed after the transaction that made its table.
test "$(psql -d locks -At -c "SELECT e.xmin <> t.xmin AND has_table_privilege('app', 'dmutex.registers', 'UPDATE')
    FROM dmutex.epoch e, pg_class t WHERE t.oid = 'dmutex.epoch'::regclass" 2>&1)" = t || complain "no new epoch, or no grant"
result "the statements make the tables, grant rights and draw a new epoch"
$as_other "$bin/pg_ctl" -D "$database/data" -m immediate -w stop >>"$scratch/start.log"
finish
