#!/bin/sh
# psycopg: in pipeline mode an INSERT ... RETURNING returns its row, the commit fails, and the error is never raised.
#
# Expected: a statement whose commit fails raises that error, here UniqueViolation, as it does without the pipeline.
# Found: fetchone() returns the row, which is never committed.  The end of the pipeline then raises OperationalError
#   "cannot exit pipeline mode while busy".  Nothing says that a constraint was violated.
# Where: psycopg 3.3.9 (and 3.2.10) with its own libpq 18, PostgreSQL 15.18.  The server answers the statement, and
#   commits only at the Sync.  An error of the commit comes as one result more, which belongs to no statement, before the
#   result of the Sync; psycopg expects the Sync there.  Constraints that are DEFERRABLE INITIALLY DEFERRED, and
#   serializable transactions, fail there.
# Why it matters: whoever takes a lock by inserting a row, and looks at the row that comes back, owns a lock that nobody
#   has.  The same order of results is in libpq, and any client that counts one result for each statement meets it.

. "$(dirname "$0")/lib.sh"

need setpriv
start_postgres
install_python 'psycopg[binary]==3.3.9'

cat >"$scratch/run.py" <<'END'
import sys
import psycopg

place = sys.argv[1]


def connect():
    return psycopg.connect(place, autocommit=True)


def tell(title, work):
    print(title)
    try:
        work(connect())
        print("  no error")
    except Exception as error:
        print(f"  {type(error).__name__}: {str(error).splitlines()[0]}")
    print("  rows:", connect().execute("SELECT count(*) FROM locks").fetchone()[0])


def alone(connection):
    print("  returned:", connection.execute("INSERT INTO locks VALUES ('a', 'me') RETURNING owner").fetchone())


def in_pipeline(connection):
    with connection.pipeline():
        print("  returned:", connection.execute("INSERT INTO locks VALUES ('a', 'me') RETURNING owner").fetchone())


def without_fetch(connection):
    with connection.pipeline():
        connection.execute("INSERT INTO locks VALUES ('a', 'me') RETURNING owner")


connect().execute("CREATE TABLE locks (name text UNIQUE DEFERRABLE INITIALLY DEFERRED, owner text)")
connect().execute("INSERT INTO locks VALUES ('a', 'another')")
tell("without a pipeline", alone)
tell("in a pipeline", in_pipeline)
tell("in a pipeline, without fetchone()", without_fetch)
END
"$python" "$scratch/run.py" "host=$postgres user=postgres" >"$scratch/said" 2>"$scratch/errors"

check "$scratch/said" <<'END'
without a pipeline
  UniqueViolation: duplicate key value violates unique constraint "locks_name_key"
  rows: 1
in a pipeline
  returned: ('me',)
  OperationalError: cannot exit pipeline mode while busy
  rows: 1
in a pipeline, without fetchone()
  OperationalError: cannot exit pipeline mode while busy
  rows: 1
END
