#!/bin/sh
# ioredis-mock: a lock script that works on the mock takes the lock on the real server and says that it did not.
#
# Expected: a script that passes its tests on the mock does the same on redis-server.
# Found: in a script, the reply of SET is the string "OK" on the mock and a table with the field "ok" on redis-server.
#   `redis.call('set', ...) == 'OK'` is true on the mock and never true on redis-server, where the key is set all the
#   same; `redis.call('set', ...).ok` is right on redis-server and nil on the mock. So each of the two passes its tests
#   on one of them only. A test for "not false" is right on both.
# Where: ioredis-mock 8.13.1, lib/index.js, callToRedisCommand(): it pushes the command's return value as it is.
# Why it matters: the caller hears "busy", does not work and does not unlock, and the lock stays taken for its whole
#   time to live, again at each try.

. "$(dirname "$0")/lib.sh"

install_node ioredis-mock@8.13.1 ioredis@5.8.2
start_redis

cat >"$node_folder/run.mjs" <<'END'
import Redis from 'ioredis'
import Mock from 'ioredis-mock'

const scripts = {
  "== 'OK'": "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', 60000) == 'OK' then return 'taken' end return 'busy'",
  '.ok': "local r = redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', 60000) if r and r.ok then return 'taken' end return 'busy'",
  'not false': "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', 60000) then return 'taken' end return 'busy'"
}
for (const [title, client] of [['redis-server', new Redis(process.argv[2])], ['ioredis-mock', new Mock()]]) {
  console.log(title)
  for (const [test, script] of Object.entries(scripts)) {
    const says = await client.eval(script, 1, `lock ${test}`, 'me')
    console.log(`  ${test}: says ${says}, owner ${await client.get(`lock ${test}`)}`)
  }
  client.disconnect()
}
END
node "$node_folder/run.mjs" "$redis" >"$scratch/said"

check "$scratch/said" <<'END'
redis-server
  == 'OK': says busy, owner me
  .ok: says taken, owner me
  not false: says taken, owner me
ioredis-mock
  == 'OK': says taken, owner me
  .ok: says busy, owner me
  not false: says taken, owner me
END
