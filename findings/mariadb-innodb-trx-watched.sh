#!/bin/sh
# MariaDB: whoever watches information_schema.INNODB_TRX more often than every 0.1 s never sees that a transaction waits.
#
# Expected: a loop that asks "does anybody wait for this lock?" sees the waiter soon after it has begun to wait.
# Found: InnoDB answers from a copy, which it makes anew only if nobody has asked for 0.1 s.  A loop with a pause of 20 ms
#   keeps the copy from before the wait for as long as it runs; after one pause of 0.3 s the waiter is there.  The status
#   Innodb_row_lock_current_waits is always of now.
# Where: MariaDB 10.11.19, PyMySQL 1.2.4.  INNODB_LOCKS and INNODB_LOCK_WAITS are parts of the same copy.
# Why it matters: tests that wait until the other client waits for its lock end by a timeout, and monitors that share a server
#   with another one that asks often show an old picture.

. "$(dirname "$0")/lib.sh"

start_mariadb
install_python pymysql==1.2.4

cat >"$scratch/run.py" <<'END'
import sys, threading, time
import pymysql

def client():
    return pymysql.connect(unix_socket=sys.argv[1], user="root", autocommit=True)

def ask(who, statement):
    with who.cursor() as cursor:
        cursor.execute(statement)
        row = cursor.fetchone()
        return row and row[-1]

WAITERS = "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'"

holder, waiter, watcher, other = client(), client(), client(), client()
ask(holder, "CREATE DATABASE bank")
ask(holder, "CREATE TABLE bank.account (id INT PRIMARY KEY, balance INT) ENGINE = InnoDB")
ask(holder, "INSERT INTO bank.account VALUES (1, 0)")
ask(holder, "BEGIN")
ask(holder, "UPDATE bank.account SET balance = 1")
seen, is_over = [], threading.Event()

def watch():
    while not is_over.is_set():
        seen.append(int(ask(watcher, WAITERS)))
        time.sleep(0.02)

watching = threading.Thread(target=watch)
watching.start()
while not seen:
    time.sleep(0.01)
update = threading.Thread(target=ask, args=(waiter, "UPDATE bank.account SET balance = 2"))
update.start()
while int(ask(other, "SHOW STATUS LIKE 'Innodb_row_lock_current_waits'")) == 0:
    time.sleep(0.02)
print("Innodb_row_lock_current_waits:", ask(other, "SHOW STATUS LIKE 'Innodb_row_lock_current_waits'"))
seen.clear()
time.sleep(3)
is_over.set()
watching.join()
print("INNODB_TRX has been asked more than 20 times:", len(seen) > 20)
print("the most waiters that it has shown:", max(seen))
time.sleep(0.3)
print("waiters after a pause of 0.3 s:", ask(watcher, WAITERS))
ask(holder, "COMMIT")
update.join()
END
"$python" "$scratch/run.py" "$mariadb" >"$scratch/said"

check "$scratch/said" <<'END'
Innodb_row_lock_current_waits: 1
INNODB_TRX has been asked more than 20 times: True
the most waiters that it has shown: 0
waiters after a pause of 0.3 s: 1
END
