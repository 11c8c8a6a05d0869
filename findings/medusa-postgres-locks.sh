#!/bin/sh
# Medusa's locks on PostgreSQL: one that expires is refused to all others for ever, and a timeout of 2 s takes 7 s.
#
# Expected: acquire() with expire: 2 is a lock for two seconds; after that another owner gets it, as from Medusa's provider
#   for Redis.  execute() with timeout: 2 gives up after two seconds if another holds the key.
# Found: nobody but the same owner ever gets the lock of an owner that died.  execute() throws "Timed-out acquiring lock."
#   five seconds late, also if the lock becomes free meanwhile, and does not run the job.
# Where: @medusajs/locking-postgres 2.21.2, dist/services/advisory-lock.js.  acquire() looks at the owner of the row only,
#   not at its expiration, and nothing removes old rows.  execute() rolls back when its timer ends, on the connection whose
#   pg_advisory_xact_lock() still waits; Knex waits for five seconds until it leaves such a ROLLBACK alone.
# Why it matters: one crash between acquire() and release() stops the job for good, which the expiry was there to prevent.
#   Under contention each request keeps its caller and a connection of the pool for five seconds more than it was allowed.

. "$(dirname "$0")/lib.sh"

install_node @medusajs/locking-postgres@2.21.2 @medusajs/framework@2.21.2
start_postgres

cat >"$node_folder/run.cjs" <<'END'
const { MikroORM } = require('@mikro-orm/postgresql')
const { PostgresAdvisoryLockProvider } = require('@medusajs/locking-postgres/dist/services/advisory-lock.js')

const seconds = (number) => new Promise((resolve) => setTimeout(resolve, number * 1000))

async function main() {
  const orm = await MikroORM.init({
    host: process.argv[2], user: 'postgres', dbName: 'postgres', entities: [], discovery: { warnWhenNoEntities: false }
  })
  const manager = orm.em.fork()
  await manager.execute('CREATE TABLE locking (id text PRIMARY KEY, owner_id text, expiration timestamptz)')
  const [one, two] = [1, 2].map(() => new PostgresAdvisoryLockProvider({ manager: orm.em.fork() }))
  const tell = async (title, promise) => {
    const text = await promise.then(() => 'done', (error) => error.message)
    console.log(`${title}: ${text}`)
  }

  await tell('acquire() by one, for 2 s', one.acquire('job', { ownerId: 'one', expire: 2 }))
  await seconds(5)
  await tell('acquire() by two, 5 s later', two.acquire('job', { ownerId: 'two', expire: 2 }))
  const [row] = await manager.execute('SELECT expiration < now() - interval \'2 s\' AS expired FROM locking')
  console.log('  the row has expired long ago:', row.expired)

  let holds
  const held = new Promise((resolve) => { holds = resolve })
  const first = one.execute('task', async () => { holds(); await seconds(12) })
  await held
  const start = Date.now()
  await tell('execute() by two, for 2 s at most, of what one holds for 12 s',
    two.execute('task', async () => console.log('  the job runs'), { timeout: 2 }))
  console.log('  it said so after more than 6 s:', Date.now() - start > 6000)
  await first
  process.exit()
}

main()
END
node "$node_folder/run.cjs" "$postgres" >"$scratch/said" 2>"$scratch/log" || give_up "run.cjs: $(tail -n 1 "$scratch/log")"

check "$scratch/said" <<'END'
acquire() by one, for 2 s: done
acquire() by two, 5 s later: Failed to acquire lock for key "job"
  the row has expired long ago: true
execute() by two, for 2 s at most, of what one holds for 12 s: Timed-out acquiring lock.
  it said so after more than 6 s: true
END
