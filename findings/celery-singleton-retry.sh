#!/bin/sh
# celery-singleton: a task that asks for a retry is never tried again, and its lock stays for ever.
#
# Expected: a Singleton task is queued once at a time, and else is like any task of Celery: after self.retry() it runs again.
#   Its lock goes when it has finished, as the README says, which has no word on retries.
# Found: a plain task that retries twice runs three times.  The same task with base=Singleton runs once and has the state
#   RETRY from then on.  Each later delay() returns the first one's result and queues nothing.
# Where: celery-singleton 0.3.1 with Celery 5.7.0, celery_singleton/singleton.py.  retry() sends the task with the apply_async()
#   that all callers use; it finds the task's own lock there, takes the retry for a duplicate and sends nothing.
#   The lock is released after a success or a failure, and a retry is neither.  It has no expiry unless one is set.
# Why it matters: retries are for a network that fails for a moment.  One such moment, and the job never runs again,
#   without an error: whoever asks for it gets a result that is on its way for ever.

. "$(dirname "$0")/lib.sh"

install_python celery-singleton==0.3.1 celery==5.7.0 redis==7.4.0 packaging==25.0
start_redis

cat >"$scratch/jobs.py" <<'END'
import os
from celery import Celery
from celery_singleton import Singleton

url = os.environ["REDIS_URL"]
socket = url.replace("unix://", "redis+socket://")
app = Celery("jobs", broker=socket, backend=socket)
app.conf.singleton_backend_url = url
app.conf.broker_connection_retry_on_startup = True

def run(self):
    with open(os.environ["RUNS"], "a") as runs:
        runs.write(f"{self.name}\n")
    if self.request.retries < 2:
        raise self.retry(countdown=1)

plain = app.task(bind=True, name="plain", max_retries=5)(run)
single = app.task(bind=True, name="single", base=Singleton, max_retries=5)(run)
END
cat >"$scratch/run.py" <<'END'
import os, time
from redis import Redis
from jobs import plain, single

def tell():
    with open(os.environ["RUNS"]) as file:
        runs = file.read().split()
    print(f"runs of both: plain {runs.count('plain')}, single {runs.count('single')}")

first, second = plain.delay(), single.delay()
time.sleep(15)
tell()
print(f"states: plain {first.state}, single {second.state}")
print("single is asked for again: a new task:", single.delay().id != second.id)
time.sleep(5)
tell()
redis = Redis.from_url(os.environ["REDIS_URL"])
for name in redis.keys("SINGLETONLOCK_*"):
    print("time to live of its lock:", redis.ttl(name))
END
export REDIS_URL="unix://$redis" RUNS="$scratch/runs" PYTHONPATH="$scratch"
: >"$RUNS"
"$python" -m celery -A jobs worker --pool solo --loglevel info >"$scratch/worker.log" 2>&1 &
servers="$! $servers"
wait_for grep -q " ready" "$scratch/worker.log"
"$python" "$scratch/run.py" >"$scratch/said" 2>"$scratch/log" || give_up "run.py: $(tail -n 1 "$scratch/log")"

check "$scratch/said" <<'END'
runs of both: plain 3, single 1
states: plain SUCCESS, single RETRY
single is asked for again: a new task: False
runs of both: plain 3, single 1
time to live of its lock: -1
END
