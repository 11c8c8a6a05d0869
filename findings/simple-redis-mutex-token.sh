#!/bin/sh
# simple-redis-mutex: whoever lost the lock gets a higher fencing token than the one who has it.
#
# Expected: each lock comes with a fencing token, documented as an increasing number that tells the order in which locks
#   are acquired.  A resource refuses tokens that are lower than the highest that it has seen, so whoever lost the lock is kept out.
# Found: a program that is busy for longer than the timeout while the answer to its request arrives has lost its lock
#   before it has a token.  Another takes the lock, with token 2, and the first then gets token 3.  The resource lets the
#   first one in and keeps the owner of the lock out.
# Where: simple-redis-mutex 3.0.0, dist/index.js, tryLock(): SET with NX, and INCR of the counter as a command of its own,
#   after the answer.  Nothing looks whether the lock is still there.
# Why it matters: a pause in the owner is the very case for which there are fencing tokens.  A script on the server that
#   does both would give tokens in the order of the locks.

. "$(dirname "$0")/lib.sh"

install_node simple-redis-mutex@3.0.0 redis@5.12.0
start_redis

cat >"$node_folder/run.cjs" <<'END'
const { createClient } = require('redis')
const { fork } = require('node:child_process')
const { tryLock } = require('simple-redis-mutex')

const socket = { path: process.argv[2] }

async function other() {
  const client = await createClient({ socket }).connect()
  process.send('ready')
  while (!await client.exists('@simple-redis-mutex:lock-report')); // the first program is first
  for (;;) {
    const [got, release] = await tryLock(client, 'report', { timeout: 60000 })
    if (got) {
      process.send({ token: release.fencingToken })
      return
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

async function main() {
  const client = await createClient({ socket }).connect()
  const [, release] = await tryLock(client, 'report')
  console.log('first lock, token', release.fencingToken)
  await release()
  const child = fork(__filename, [process.argv[2], 'other'])
  const said = () => new Promise((resolve) => child.once('message', resolve))
  await said()
  const otherGot = said()
  const lock = tryLock(client, 'report', { timeout: 1000 })
  const work = () => { for (const end = Date.now() + 5000; Date.now() < end;); }
  setImmediate(() => setImmediate(work)) // the client writes its SET at the first of the two
  const [got, late] = await lock
  console.log('first program again, busy for 5 s with a timeout of 1 s: locked', got, 'token', late.fencingToken)
  console.log('second program meanwhile: token', (await otherGot).token)
  child.kill()
  await new Promise((resolve) => child.once('exit', resolve))
  process.exit()
}

process.argv[3] === 'other' ? other() : main()
END
node "$node_folder/run.cjs" "$redis" >"$scratch/said"

check "$scratch/said" <<'END'
first lock, token 1
first program again, busy for 5 s with a timeout of 1 s: locked true token 3
second program meanwhile: token 2
END
