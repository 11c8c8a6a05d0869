#!/bin/sh
# MariaDB: the deadlock of two GET_LOCK() is error 1213, but the transaction goes on, so whoever restarts it counts twice.
#
# Expected: error 1213, "Deadlock found when trying to get lock; try restarting transaction", ends the transaction: all
#   that it did is rolled back, and the program executes it again from its first statement.  So it is with rows.
# Found: if the deadlock is one of GET_LOCK(), the same error with the same text comes, and the transaction is open as
#   before, with what it did.  Executed again and committed, it has added twice.
# Where: MariaDB 10.11.19, PyMySQL 1.2.4.  MySQL has an error of its own for it, 3058.
# Why it matters: a handler of 1213 that starts again without a ROLLBACK is right, as the server has done one, until
#   somebody guards a part of a transaction by named locks.

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
        return row and row[0]

def deadlock(title, first, second):
    """each of two clients has one of a pair of locks and wants the other"""
    one, two, watcher = client(), client(), client()
    ask(watcher, "UPDATE bank.account SET balance = 100 WHERE id = 1")
    ask(two, "BEGIN")
    ask(two, "UPDATE bank.account SET balance = 1 WHERE id > 3")  # InnoDB ends the transaction with the fewest changes
    ask(two, second)
    ask(one, "BEGIN")
    ask(one, "UPDATE bank.account SET balance = balance + 10 WHERE id = 1")
    ask(one, first)

    def other():
        ask(two, first)
        ask(two, "ROLLBACK")
        two.close()

    thread = threading.Thread(target=other)
    thread.start()
    while ask(watcher, "SELECT COUNT(*) FROM information_schema.processlist"
                       f" WHERE id = {two.thread_id()} AND command = 'Query' AND time_ms > 200") == 0:
        time.sleep(0.05)
    print(title)
    try:
        ask(one, second)
        print("  no deadlock")
    except pymysql.MySQLError as error:
        print("  error", *error.args)
    thread.join()
    print("  in a transaction:", ask(one, "SELECT @@in_transaction"))
    ask(one, "UPDATE bank.account SET balance = balance + 10 WHERE id = 1")
    ask(one, "COMMIT")
    print("  started again and committed: 100 + 10 =", ask(watcher, "SELECT balance FROM bank.account WHERE id = 1"))
    one.close()

setup = client()
ask(setup, "CREATE DATABASE bank")
ask(setup, "CREATE TABLE bank.account (id INT PRIMARY KEY, balance INT) ENGINE = InnoDB")
ask(setup, "INSERT INTO bank.account VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0), (7, 0)")
deadlock("rows", "SELECT * FROM bank.account WHERE id = 2 FOR UPDATE", "SELECT * FROM bank.account WHERE id = 3 FOR UPDATE")
deadlock("GET_LOCK()", "SELECT GET_LOCK('left', 10)", "SELECT GET_LOCK('right', 10)")
END
"$python" "$scratch/run.py" "$mariadb" >"$scratch/said"

check "$scratch/said" <<'END'
rows
  error 1213 Deadlock found when trying to get lock; try restarting transaction
  in a transaction: 0
  started again and committed: 100 + 10 = 110
GET_LOCK()
  error 1213 Deadlock found when trying to get lock; try restarting transaction
  in a transaction: 1
  started again and committed: 100 + 10 = 120
END
