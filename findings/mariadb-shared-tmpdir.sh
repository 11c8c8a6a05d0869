#!/bin/sh
# MariaDB: a server that starts deletes the temporary tables of every other server on the machine.
#
# Expected: two servers with data directories, sockets and ports of their own do not touch each other's files.
# Found: a server that starts deletes all files in its tmpdir whose names begin with #sql, whoever has made them. The tmpdir
#   is /tmp, or $TMPDIR, unless the configuration says otherwise; so this is also what mariadb-install-db does, which starts a
#   server to make the system's tables. The first server's session still has its temporary table, whose files are gone.
# Where: MariaDB 10.11.19. The rights of the two decide: servers of one user, or a second one of root.
# Why it matters: tests and tools that start a private server beside a real one, or several at a time, take away its temporary
#   tables, also those that the server makes for itself to answer a query; give each a tmpdir of its own.

. "$(dirname "$0")/lib.sh"

start_mariadb
install_python pymysql==1.2.4

count()
{
    find "$scratch/mariadb" -maxdepth 1 -name '#sql*' | wc -l
}

cat >"$scratch/table.py" <<'END'
import sys
import pymysql

session = pymysql.connect(unix_socket=sys.argv[1], user="root").cursor()
session.execute("CREATE TEMPORARY TABLE mysql.numbers (number INT) ENGINE = Aria")
print("made", flush=True)
sys.stdin.read()
END
mkfifo "$scratch/end"
"$python" "$scratch/table.py" "$mariadb" <"$scratch/end" >"$scratch/table" 2>&1 &
servers="$! $servers"
exec 9>"$scratch/end"
wait_for grep -q made "$scratch/table"
before=$(count)
[ "$before" -gt 0 ] && echo "a temporary table has files" >>"$scratch/said"

mkdir "$scratch/second"
[ "$(id -u)" != 0 ] || chown nobody:nogroup "$scratch/second"
$other env TMPDIR="$scratch/mariadb" LD_LIBRARY_PATH="$libraries" "$debian/usr/sbin/mariadbd" --no-defaults \
    --skip-grant-tables --skip-networking --datadir="$scratch/second" --socket="$scratch/second/socket" \
    --lc-messages-dir="$debian/usr/share/mysql" >"$scratch/second.log" 2>&1 &
servers="$! $servers"
wait_for grep -q 'ready for connections' "$scratch/second.log"
echo "after the start of a second server there are $(count)" >>"$scratch/said"

check "$scratch/said" <<'END'
a temporary table has files
after the start of a second server there are 0
END
