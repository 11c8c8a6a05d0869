#!/bin/sh
# Medusa's locks on Redis: a request for two keys that is refused because of one leaves the other locked, for ever.
#
# Expected: who is refused "cart" and "stock" has neither of them.  acquire() that throws has taken nothing, and execute()
#   that throws "Timed-out acquiring lock." has given back what it took: it says that it hands keys back.
# Found: while another holds "stock", acquire(['cart', 'stock']) throws and leaves "cart" locked, without any time to live as
#   there was no expire.  execute(['cart', 'stock'], ...) with a timeout of two seconds leaves "cart" locked for a minute,
#   for nobody.  Two programs that ask for the same two keys in opposite orders can so both fail, and block all others.
# Where: @medusajs/locking-redis 2.21.2 on redis-server, dist/services/redis-lock.js.  All keys are asked for at once, and one
#   refusal rejects the whole.  execute() gives back only after a late success of all keys; its timeout is what
#   makes the waiting key reject.
# Why it matters: locks of several keys are for orders and carts that meet.  One refusal under contention locks the free
#   keys as well, and nobody has the owner's name with which execute() locked them.

. "$(dirname "$0")/lib.sh"

export npm_config_legacy_peer_deps=true # what the framework could work with is not needed
install_node @medusajs/locking-redis@2.21.2 @medusajs/framework@2.21.2 ioredis@5.8.2
start_redis

cat >"$node_folder/run.cjs" <<'END'
const { Redis } = require('ioredis')
const { RedisLockingProvider } = require('@medusajs/locking-redis/dist/services/redis-lock.js')

async function main() {
  const redisClient = new Redis(process.argv[2])
  const [one, two, three] = [1, 2, 3].map(() => new RedisLockingProvider({ redisClient, logger: console }, {}))
  const tell = async (title, promise) => {
    const text = await promise.then(() => 'done', (error) => error.message)
    console.log(`${title}: ${text}`)
  }

  await tell('one acquires stock', one.acquire('stock', { ownerId: 'one' }))
  await tell('two acquires cart and stock', two.acquire(['cart', 'stock'], { ownerId: 'two' }))
  await one.release('stock', { ownerId: 'one' })
  await tell('three acquires stock, which one has released', three.acquire('stock', { ownerId: 'three' }))
  await tell('three acquires cart', three.acquire('cart', { ownerId: 'three' }))
  console.log('  its owner and time to live:', await redisClient.get('medusa_lock:cart'), await redisClient.ttl('medusa_lock:cart'))

  await redisClient.flushall()
  await tell('one acquires stock', one.acquire('stock', { ownerId: 'one' }))
  await tell('two executes with cart and stock, for 2 s at most',
    two.execute(['cart', 'stock'], async () => console.log('  the job runs'), { timeout: 2 }))
  await one.release('stock', { ownerId: 'one' })
  await new Promise((resolve) => setTimeout(resolve, 5000))
  await tell('three executes with stock, 5 s later', three.execute('stock', async () => {}, { timeout: 2 }))
  await tell('three executes with cart', three.execute('cart', async () => {}, { timeout: 2 }))
  console.log('  it is locked for more than 40 s:', await redisClient.ttl('medusa_lock:cart') > 40)
  process.exit()
}

main()
END
node "$node_folder/run.cjs" "$redis" >"$scratch/said" 2>"$scratch/log" || give_up "run.cjs: $(tail -n 1 "$scratch/log")"

check "$scratch/said" <<'END'
one acquires stock: done
two acquires cart and stock: Failed to acquire lock for key "stock"
three acquires stock, which one has released: done
three acquires cart: Failed to acquire lock for key "cart"
  its owner and time to live: two -1
one acquires stock: done
two executes with cart and stock, for 2 s at most: Timed-out acquiring lock.
three executes with stock, 5 s later: done
three executes with cart: Timed-out acquiring lock.
  it is locked for more than 40 s: true
END
