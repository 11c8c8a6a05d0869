#!/bin/sh
# redis-lock (npm): a release while the network is away is sent when it is back, and then frees the lock of another.
#
# Expected: each lock has its time to live, and release() does nothing once that is over: it looks at the clock for it.
#   Another that has got the lock since then keeps it.
# Found: release(), called in time during an outage of four seconds, deletes the lock that another has taken meanwhile for
#   a minute, and says 1, as after a release of one's own.
# Where: redis-lock 1.0.0 with redis (node-redis) 4.7.1, its client library, on redis-server.  redis-lock sends a DEL of the
#   name alone after it has looked at the clock; node-redis keeps the commands of the time without a connection and
#   sends them after it has one again, however late.
# Why it matters: an outage makes many locks expire at once, and their work goes to others.  When it ends, the releases of all
#   that finished during it arrive together, and each ends a lock on which work has just begun again.

. "$(dirname "$0")/lib.sh"

install_node redis-lock@1.0.0 redis@4.7.1
start_redis

cat >"$node_folder/run.cjs" <<'END'
const net = require('net')
const { createClient } = require('redis')
const redisLock = require('redis-lock')

const seconds = (number) => new Promise((resolve) => setTimeout(resolve, number * 1000))

// the network of one: a relay that can go away and come back
const links = new Set()
const relay = net.createServer((near) => {
  const far = net.connect(process.argv[2])
  for (const [from, to] of [[near, far], [far, near]]) {
    links.add(from)
    from.pipe(to)
    from.on('error', () => {})
    from.on('close', () => {
      links.delete(from)
      to.destroy()
    })
  }
})
const listen = (port) => new Promise((resolve) => relay.listen(port, '127.0.0.1', resolve))

async function main() {
  await listen(0)
  const port = relay.address().port
  const one = createClient({ socket: { host: '127.0.0.1', port } })
  const two = createClient({ socket: { path: process.argv[2] } })
  for (const client of [one, two]) {
    client.on('error', () => {})
    await client.connect()
  }
  const release = await redisLock(one)('job', 3000)
  console.log('one has the lock for 3 s')
  relay.close()
  links.forEach((link) => link.destroy())
  await seconds(1)
  const answer = release()
  console.log('one releases it after 1 s, while its network is away')
  await seconds(3)
  await redisLock(two)('job', 60000)
  console.log('two has it for 60 s:', await two.exists('lock.job') === 1)
  await listen(port)
  console.log('the network of one is back, and its release says', await answer)
  console.log('two has it still:', await two.exists('lock.job') === 1)
  process.exit()
}

main()
END
node "$node_folder/run.cjs" "$redis" >"$scratch/said" 2>"$scratch/log" || give_up "run.cjs: $(tail -n 1 "$scratch/log")"

check "$scratch/said" <<'END'
one has the lock for 3 s
one releases it after 1 s, while its network is away
two has it for 60 s: true
the network of one is back, and its release says 1
two has it still: false
END
