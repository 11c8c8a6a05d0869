#!/bin/sh
# sqlalchemy-dlock on MariaDB: acquire() without a timeout raises an error for every lock, also for a free one.
#
# Expected: acquire() waits for as long as it takes, as on MySQL.  The library lists MariaDB among its databases, as
#   compatible with MySQL, and has the two drivers under one class.
# Found: acquire(), and so the with statement, raises SqlAlchemyDLockDatabaseError "An error occurred while attempting to
#   obtain the lock", at once and for any name.  With a timeout, and with block=False, all is well.
# Where: sqlalchemy-dlock 0.9.0, sqlalchemy_dlock/lock/mysql.py: "for ever" is GET_LOCK(name, -1).  MySQL waits for ever with
#   a negative timeout.  MariaDB 10.11.19 takes it for an error: it returns NULL without looking at the lock, and says why in a
#   warning (1411) that no driver raises.
# Why it matters: a program that was tested on MySQL takes no lock any more on MariaDB.  GET_LOCK(name, -1) is MySQL's way
#   to wait for ever in any language, and code that looks at the result for 0, "timed out", goes on without a lock.

. "$(dirname "$0")/lib.sh"

start_mariadb
install_python pymysql==1.2.4 sqlalchemy==2.1.9 sqlalchemy-dlock==0.9.0

cat >"$scratch/run.py" <<'END'
import sys
import sqlalchemy
from sqlalchemy_dlock import create_sadlock
from sqlalchemy_dlock.exceptions import SqlAlchemyDLockDatabaseError

engine = sqlalchemy.create_engine(f"mariadb+pymysql://root@/?unix_socket={sys.argv[1]}")
with engine.connect() as connection:
    for title, arguments in ("timeout=3", {"timeout": 3}), ("block=False", {"block": False}), ("", {}):
        lock = create_sadlock(connection, "free")
        try:
            print(f"acquire({title}):", lock.acquire(**arguments))
            lock.release()
        except SqlAlchemyDLockDatabaseError as error:
            print(f"acquire({title}):", error)
    for timeout in 0, 0.5, -1:
        print(f"GET_LOCK('free', {timeout}):", connection.exec_driver_sql(f"SELECT GET_LOCK('free', {timeout})").scalar())
    for level, code, message in connection.exec_driver_sql("SHOW WARNINGS"):
        print(f"  {level.lower()} {code}: {message}")
END
"$python" "$scratch/run.py" "$mariadb" >"$scratch/said"

check "$scratch/said" <<'END'
acquire(timeout=3): True
acquire(block=False): True
acquire(): An error occurred while attempting to obtain the lock 'free'
GET_LOCK('free', 0): 1
GET_LOCK('free', 0.5): 1
GET_LOCK('free', -1): None
  warning 1411: Incorrect timeout value: '-1' for function get_lock
END
