#!/bin/sh
# PALs: with an engine that the program shares with it, now() in the program's transactions is a time of the past.
#
# Expected: pals.Locker takes its connections from the SQLAlchemy engine that create_engine_callable returns, and gives
#   them back as it got them. The program's own transactions on the engine are as before.
# Found: each connection waits in the pool in an open transaction, also if no lock was ever taken. The next user of the
#   connection goes on in it, and now(), the default of many a "created" column, is when the last one gave the connection
#   back. After a lock, lock_timeout is 30 s for the program's statements as well.
# Where: PALs 0.4.0, pals/core.py. Locker.__init__() listens for "checkin", which SQLAlchemy 2.1.9 sends after its
#   rollback, and executes "select pg_advisory_unlock_all()" there; psycopg begins a transaction for that.
#   Lock._acquire() sets lock_timeout for the session and leaves it.
# Why it matters: times of rows are wrong by as long as the program was idle, by nothing in a test and by hours at night.
#   With idle_in_transaction_session_timeout the server ends the connections in the pool.

. "$(dirname "$0")/lib.sh"

need setpriv
install_python PALs==0.4.0 SQLAlchemy==2.1.9 psycopg2-binary==2.9.13
start_postgres

cat >"$scratch/run.py" <<'END'
import sys, time
import pals, sqlalchemy
from sqlalchemy import text

def make():
    return sqlalchemy.create_engine(f"postgresql+psycopg2://postgres@/postgres?host={sys.argv[1]}", pool_size=1)

watcher = make()
for title, is_shared in ("an engine of its own", False), ("an engine shared with PALs", True):
    print(title)
    engine = make()
    if is_shared:
        locker = pals.Locker("program", create_engine_callable=lambda: engine)
    with engine.begin() as connection:
        pid = connection.scalar(text("SELECT pg_backend_pid()"))
    time.sleep(3)
    with watcher.begin() as connection:
        state = connection.scalar(text("SELECT state FROM pg_stat_activity WHERE pid = :pid"), {"pid": pid})
        print("  while nobody uses the connection:", state)
    with engine.begin() as connection:
        is_old = connection.scalar(text("SELECT clock_timestamp() - now() >= interval '3 s'"))
        print("  now() is 3 s old:", is_old)
    if is_shared:
        with locker.lock("job"):
            pass
        with engine.begin() as connection:
            print("  lock_timeout after a lock:", connection.scalar(text("SHOW lock_timeout")))
END
"$python" "$scratch/run.py" "$postgres" >"$scratch/said"

check "$scratch/said" <<'END'
an engine of its own
  while nobody uses the connection: idle
  now() is 3 s old: False
an engine shared with PALs
  while nobody uses the connection: idle in transaction
  now() is 3 s old: True
  lock_timeout after a lock: 30s
END
