#!/bin/sh
# redis-semaphore: a participant with a short timeout throws out a holder whose permit is valid for minutes.
#
# Expected: a permit taken with lockTimeout 60 000 is good for 60 s, whatever timeout the others use.
# Found: in a semaphore of one permit, a second participant with lockTimeout 300 gets the permit 0.3 s after the first
#   took it. The first one's permit is deleted on the server; its next refresh() says so, if it ever refreshes.
# Where: redis-semaphore 5.8.0, lib/semaphore/acquire/lua.js. An entry of the sorted set is the moment of its taking,
#   not of its end. acquireLua() deletes all entries older than now - lockTimeout, with the lockTimeout of the caller.
#   Its PEXPIRE also gives the whole set the caller's timeout.
# Why it matters: to lower lockTimeout in a rolling upgrade, or to try from a shell with a small one, ends the permits
#   of all processes that still use the larger one, and more than the limit work at once.

. "$(dirname "$0")/lib.sh"

install_node redis-semaphore@5.8.0 ioredis@5.8.2
start_redis

cat >"$node_folder/run.mjs" <<'END'
import Redis from 'ioredis'
import { Semaphore } from 'redis-semaphore'
import { setTimeout as pause } from 'node:timers/promises'

const client = new Redis(process.argv[2])
const long = new Semaphore(client, 'printer', 1, { lockTimeout: 60000, refreshInterval: 0 })
const alike = new Semaphore(client, 'printer', 1, { lockTimeout: 60000, refreshInterval: 0, acquireAttemptsLimit: 1 })
const short = new Semaphore(client, 'printer', 1, { lockTimeout: 300, refreshInterval: 0, acquireAttemptsLimit: 1 })

console.log('first, 60 s:', await long.tryAcquire())
await pause(400)
console.log('second, 60 s:', await alike.tryAcquire())
console.log('second, 0.3 s:', await short.tryAcquire())
console.log('first is on the server:', await client.zscore('semaphore:printer', long.identifier) !== null)
console.log('first believes to have it:', long.isAcquired)
console.log('life of the set above 0.3 s:', await client.pttl('semaphore:printer') > 300)
await client.quit()
END
node "$node_folder/run.mjs" "$redis" >"$scratch/said"

check "$scratch/said" <<'END'
first, 60 s: true
second, 60 s: false
second, 0.3 s: true
first is on the server: false
first believes to have it: true
life of the set above 0.3 s: false
END
