#!/bin/sh
# tooz on PostgreSQL: locks of different names are one lock, here "job-181" and "job-492".
#
# Expected: a lock excludes those who ask for the same name. A hash of 64 bits, which is what PostgreSQL's advisory
#   locks have room for, makes an accident unlikely.
# Found: while one program holds "job-181", another is refused "job-492" and gets "job-182". There are 65,536 locks for
#   all names: among 300 names there is as likely as not a pair that is one lock, among 1,000 there are about eight.
# Where: tooz 9.1.0, tooz/drivers/pgsql.py, PostgresLock.__init__(): of the MD5 sum it takes two bytes, which are the two
#   numbers of pg_advisory_lock(), each from 0 to 255 where 32 bits have room. All programs of the database share them.
# Why it matters: a program that holds one of the two and asks for the other waits for itself. pg_locks shows two small
#   numbers, from which nobody guesses the name.

. "$(dirname "$0")/lib.sh"

need setpriv
install_python tooz==9.1.0 psycopg2-binary==2.9.13
start_postgres

cat >"$scratch/run.py" <<'END'
import sys, warnings
import psycopg2
from tooz import coordination

warnings.simplefilter("ignore")  # the driver says that it will be removed one day

def coordinator(member):
    made = coordination.get_coordinator(f"postgresql://postgres@/postgres?host={sys.argv[1]}", member)
    made.start()
    return made

a, b = coordinator(b"a"), coordinator(b"b")
held = a.get_lock(b"job-181")
print("job-181 by a:", held.acquire(blocking=False))
cursor = psycopg2.connect(host=sys.argv[1], user="postgres").cursor()
cursor.execute("SELECT classid, objid FROM pg_locks WHERE locktype = 'advisory'")
print("in pg_locks:", cursor.fetchall())
for name in b"job-181", b"job-182", b"job-492":
    lock = b.get_lock(name)
    print(f"{name.decode()} by b:", lock.acquire(blocking=False))
    lock.release()
held.release()
print("a releases job-181")
lock = b.get_lock(b"job-492")
print("job-492 by b:", lock.acquire(blocking=False))
lock.release()
END
"$python" "$scratch/run.py" "$postgres" >"$scratch/said"

check "$scratch/said" <<'END'
job-181 by a: True
in pg_locks: [(55, 118)]
job-181 by b: False
job-182 by b: True
job-492 by b: False
a releases job-181
job-492 by b: True
END
