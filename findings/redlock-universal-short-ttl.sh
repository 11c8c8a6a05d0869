#!/bin/sh
# redlock-universal: a lock of 1.25 s or less extends itself without a pause, thousands of times a second.
#
# Expected: using() extends the lock when four fifths of its time to live are over, at least a second after the last time.
#   A job of 4 s under a lock of 1 s thus needs a few extensions; the README calls their cost minimal.
# Found: with a time to live of 1500 there are three extensions, with 1250 or 1000 as many as the connection can carry, one
#   after the other, as long as the job runs.
# Where: redlock-universal 0.8.5 with ioredis 5.8.2 on redis-server, dist/index.js, executeWithAutoExtension().  The next
#   extension is due at once if the time until then is not above minExtensionInterval, 1000 ms, which was meant as the
#   least pause; four fifths of 1250 ms are never above it.
# Why it matters: a short time to live is chosen so that others go on soon after a crash.  Each holder of such a lock then
#   occupies the server and a core of its own with extensions, without an error or a message.

. "$(dirname "$0")/lib.sh"

install_node redlock-universal@0.8.5 ioredis@5.8.2
start_redis

cat >"$node_folder/run.cjs" <<'END'
const { Redis } = require('ioredis')
const { createLock, IoredisAdapter } = require('redlock-universal')

async function main() {
  const client = new Redis(process.argv[2])
  const watch = new Redis(process.argv[2])
  const extensions = async () => {
    const stats = await watch.info('commandstats')
    return Number((/cmdstat_pexpire:calls=(\d+)/.exec(stats) ?? [0, 0])[1])
  }
  for (const ttl of [3000, 2000, 1500, 1250, 1000]) {
    const lock = createLock({ adapter: new IoredisAdapter(client), key: 'job', ttl })
    const before = await extensions()
    await lock.using(() => new Promise((resolve) => setTimeout(resolve, 4000)))
    const count = await extensions() - before
    console.log(`ttl ${ttl}, a job of 4 s: ${count > 100 ? 'more than 100' : count} extensions`)
  }
  process.exit()
}

main()
END
node "$node_folder/run.cjs" "$redis" >"$scratch/said" 2>"$scratch/log" || give_up "run.cjs: $(tail -n 1 "$scratch/log")"

check "$scratch/said" <<'END'
ttl 3000, a job of 4 s: 1 extensions
ttl 2000, a job of 4 s: 2 extensions
ttl 1500, a job of 4 s: 3 extensions
ttl 1250, a job of 4 s: more than 100 extensions
ttl 1000, a job of 4 s: more than 100 extensions
END
