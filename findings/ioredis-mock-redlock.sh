#!/bin/sh
# redlock on ioredis-mock: no lock is ever taken; the script works on keys that are named "1" or like the duration.
#
# Expected: acquire() of a free lock succeeds on the mock of ioredis as it does on ioredis with redis-server.
# Found: acquire() fails with "5 of the 1 requested resources". In a script that is defined without its number of keys,
#   all that the caller gives, the number of keys too, is in KEYS and once more in ARGV on the mock.
# Where: @sesamecare-oss/redlock 1.4.0, src/scripts.ts, gives its scripts to defineCommand() without numberOfKeys, and
#   passes the number as the first argument, as ioredis documents. ioredis-mock 8.13.1, lib/index.js, defineKeys(): with
#   numberOfKeys undefined, slice(0, undefined) is the whole list; so is slice(undefined) in defineArgv().
# Why it matters: the pair is the obvious one for unit tests of locks in Node.js. What fails looks like contention
#   ("unable to achieve a quorum"), so people raise the number of retries.

. "$(dirname "$0")/lib.sh"

install_node @sesamecare-oss/redlock@1.4.0 ioredis-mock@8.13.1 ioredis@5.8.2
start_redis

cat >"$node_folder/run.mjs" <<'END'
import Redis from 'ioredis'
import Mock from 'ioredis-mock'
import { Redlock } from '@sesamecare-oss/redlock'

for (const [title, client] of [['redis-server', new Redis(process.argv[2])], ['ioredis-mock', new Mock()]]) {
  console.log(title)
  try {
    await new Redlock([client], { retryCount: 0 }).acquire(['job'], 60000)
    console.log('  acquire: taken')
  } catch (error) {
    for (const attempt of error.attempts) {
      for (const reason of (await attempt).votesAgainst.values()) console.log(`  acquire: ${reason.message}`)
    }
  }
  client.defineCommand('show', { lua: "return 'keys ' .. table.concat(KEYS, ' ') .. ', arguments ' .. table.concat(ARGV, ' ')" })
  console.log(`  show: ${await client.show(1, 'job', 'me', '60000')}`)
  client.disconnect()
}
END
node "$node_folder/run.mjs" "$redis" >"$scratch/said"

check "$scratch/said" <<'END'
redis-server
  acquire: taken
  show: keys job, arguments me 60000
ioredis-mock
  acquire: The operation was applied to: 5 of the 1 requested resources.
  show: keys 1 job me 60000, arguments 1 job me 60000
END
