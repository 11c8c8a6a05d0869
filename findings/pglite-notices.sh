#!/bin/sh
# PGlite's socket server: a NOTIFY arrives at the client that sends it, and never at the one that listens.
#
# Expected: two clients are two sessions, as on PostgreSQL: the one that listens gets the notice, and a lock that one
#   holds is refused to the other.
# Found: the notice goes to whoever sent it, listening or not. The listener gets nothing, neither by itself nor with a
#   later statement; only its own notices come. All clients are one session, so each gets the same advisory lock, and
#   the lock of a client that has gone stays for ever.
# Where: @electric-sql/pglite-socket 0.2.17 with @electric-sql/pglite 0.5.14 and maxConnections. It passes the queries of
#   all clients to one session and the answer, notices within it, to the client of the query.
# Why it matters: it is offered as a PostgreSQL for tests. A worker that is woken by notices never wakes, a test in which
#   it notifies itself passes, and a test of exclusion finds two owners or, after a reconnect, a lock without an owner.

. "$(dirname "$0")/lib.sh"

install_node @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 pg@8.16.3

cat >"$node_folder/run.mjs" <<'END'
import { PGlite } from '@electric-sql/pglite'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'
import pg from 'pg'

const port = Number(process.argv[2])
const server = new PGLiteSocketServer({ db: await PGlite.create(), host: '127.0.0.1', port, maxConnections: 10 })
await server.start()

async function connect(name) {
  const client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres' })
  client.on('notification', (notice) => console.log(`  notice at ${name}: ${notice.payload}`))
  await client.connect()
  return client
}

async function ask(client, what) {
  return (await client.query(`SELECT ${what} AS answer`)).rows[0].answer
}

const [a, b] = [await connect('a'), await connect('b')]
await a.query('LISTEN jobs')
console.log('a listens, b notifies')
await b.query("NOTIFY jobs, 'from b'")
await new Promise((resolve) => setTimeout(resolve, 1000))
console.log('a executes a later statement')
await ask(a, '1')
console.log('a notifies')
await a.query("NOTIFY jobs, 'from a'")
console.log('lock by a:', await ask(a, 'pg_try_advisory_lock(1)'))
console.log('lock by b:', await ask(b, 'pg_try_advisory_lock(1)'))
console.log('a and b leave')
await a.end()
await b.end()
const c = await connect('c')
console.log('locks that are held:', await ask(c, "(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')"))
process.exit()
END
node "$node_folder/run.mjs" $((20000 + $$ % 10000)) >"$scratch/said"

check "$scratch/said" <<'END'
a listens, b notifies
  notice at b: from b
a executes a later statement
a notifies
  notice at a: from a
lock by a: true
lock by b: true
a and b leave
locks that are held: 1
END
