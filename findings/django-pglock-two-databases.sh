#!/bin/sh
# django-pglock: a lock on one database inside a timeout on another one leaves that timeout behind, for all later waits.
#
# Expected: a timeout is for one database, the one of "using", and its end gives that connection's lock_timeout back.  The
#   library documents that nested ones apply and go back to the previous value.
# Found: advisory(using="archive", timeout=10) inside timeout(seconds=2) of the default database leaves lock_timeout = 2s on
#   the connection to archive, where it was 0, also after all blocks have ended.  A later lock there without any
#   timeout, which waited for as long as it took before, is False after two seconds.
# Where: django-pglock 1.8.0 with Django 5.2.19, psycopg2 2.9.13 and PostgreSQL 15.18, pglock/core.py, lock_timeout().  The
#   previous value is one for the thread, not one for each connection.
# Why it matters: connections live on from request to request.  One request that uses both databases changes the waits
#   of all later ones of that worker on the second, so a job fails now and then, at a limit that its code does not have.

. "$(dirname "$0")/lib.sh"

need setpriv
install_python django-pglock==1.8.0 django-pgactivity==1.8.0 Django==5.2.19 psycopg2-binary==2.9.13 typing_extensions==4.16.0
start_postgres

cat >"$scratch/run.py" <<'END'
import sys, threading
import django
from django.conf import settings

database = {"ENGINE": "django.db.backends.postgresql", "NAME": "postgres", "USER": "postgres", "HOST": sys.argv[1]}
settings.configure(DATABASES={"default": database, "archive": dict(database, NAME="template1")},
                   INSTALLED_APPS=["pgactivity", "pglock"])
django.setup()
import pglock
from django.db import connections

def tell(title):
    limits = []
    for name in "default", "archive":
        with connections[name].cursor() as cursor:
            cursor.execute("SHOW lock_timeout")
            limits.append(f"{name} {cursor.fetchone()[0]}")
    print(f"lock_timeout {title}: {', '.join(limits)}")

held, done = threading.Event(), threading.Event()

def hold():
    with pglock.advisory("report", using="archive"):
        held.set()
        done.wait(6)
    connections.close_all()

def wait_for_holder():
    held.clear()
    done.clear()
    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    with pglock.advisory("report", using="archive") as got:
        print("a lock of archive that another has for 6 s, without a timeout:", got)
    done.set()
    holder.join()

tell("at first")
wait_for_holder()
with pglock.timeout(seconds=2):
    tell("in a timeout of default")
    with pglock.advisory("job", using="archive", timeout=10):
        pass
tell("after it and the lock of archive in it")
wait_for_holder()
END
"$python" "$scratch/run.py" "$postgres" >"$scratch/said" 2>"$scratch/log" || give_up "run.py: $(tail -n 1 "$scratch/log")"

check "$scratch/said" <<'END'
lock_timeout at first: default 0, archive 0
a lock of archive that another has for 6 s, without a timeout: True
lock_timeout in a timeout of default: default 2s, archive 0
lock_timeout after it and the lock of archive in it: default 0, archive 2s
a lock of archive that another has for 6 s, without a timeout: False
END
