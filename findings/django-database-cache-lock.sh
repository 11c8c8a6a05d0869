#!/bin/sh
# Django: on the database cache, each overflow throws out the locks whose names come first in the alphabet.
#
# Expected: cache.add(), the usual lock of Django programs (Celery's manual shows it), excludes others for its timeout.  A
#   cache may have to drop entries: MAX_ENTRIES is documented as the number of them "before old values are deleted".
# Found: none is looked at for its age or timeout, except those that have expired.  The first third in the order of the
#   names is deleted.  A lock "jobs:nightly" that was taken last of all is gone when the cache is full, and
#   another gets it, while a lock "sessions" outlives any number of pages.
# Where: Django 5.2.19, django/core/cache/backends/db.py, _cull(); with SQLite here.  MAX_ENTRIES is 300 by default.
# Why it matters: which locks hold is decided by their names, and the same ones are lost at each overflow.  A test with few
#   entries does not show it.  The file cache deletes at random, which is seldom the lock.

. "$(dirname "$0")/lib.sh"

install_python django==5.2.19

cat >"$scratch/run.py" <<'END'
import sys
import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": sys.argv[1]}},
    CACHES={"default": {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "cache"}})
django.setup()

from django.core.cache import cache
from django.core.management import call_command

call_command("createcachetable")
for number in range(298):
    cache.set(f"page:{number}", "text", timeout=3600)
print("298 pages are in the cache")
for name in "jobs:nightly", "sessions":
    print(f"{name} by a worker:", cache.add(name, "worker 1", timeout=3600))
for number in 298, 299:
    cache.set(f"page:{number}", "text", timeout=3600)
print("two pages more")
print("  the older page:99 is there:", cache.get("page:99") is not None)
for name in "jobs:nightly", "sessions":
    print(f"  {name} by another worker:", cache.add(name, "worker 2", timeout=3600))
END
"$python" "$scratch/run.py" "$scratch/database" >"$scratch/said"

check "$scratch/said" <<'END'
298 pages are in the cache
jobs:nightly by a worker: True
sessions by a worker: True
two pages more
  the older page:99 is there: True
  jobs:nightly by another worker: True
  sessions by another worker: False
END
