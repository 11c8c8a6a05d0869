#!/bin/sh
# murlock: a lock per "order.customer.id" is one lock for all customers.
#
# Expected: the key parameters of @MurLock() name properties of the method's parameters, as in 'user.id', so the lock of
#   customer 1 has nothing to do with that of customer 2.
# Found: of a name with two dots the last part is left out without a word. The key ends with "[object Object]", and the
#   call for customer 2 is refused while that for customer 1 runs. A misspelt property gives the same key.
# Where: murlock 4.4.0, dist/decorators/murlock.decorator.js: the name is split at its dots and the first two parts are
#   used. A value that is an object then, or an object without the property, becomes a string by toString().
# Why it matters: a lock that was meant to be fine-grained serializes the whole program, and the wait that it has by
#   default ends in errors as soon as two requests come together. No test with one customer shows it.

. "$(dirname "$0")/lib.sh"

install_node murlock@4.4.0 @nestjs/common@12.5.1 @nestjs/core@12.5.1 reflect-metadata@0.1.14 rxjs@7.8.2
start_redis

cat >"$node_folder/run.cjs" <<'END'
require('reflect-metadata')
const { NestFactory } = require('@nestjs/core')
const { Injectable, Module } = require('@nestjs/common')
const { MurLock, MurLockModule } = require('murlock')
const { createClient } = require('redis')

const socket = { path: process.argv[2] }
let started, finish

class Service {
  async byId(order, note) { started(); await new Promise((resolve) => { finish = resolve }) }
  async byCustomer(order, note) { started(); await new Promise((resolve) => { finish = resolve }) }
  async byMisspelt(order, note) { started(); await new Promise((resolve) => { finish = resolve }) }
}
// what @MurLock() before a method does
for (const [method, key] of [['byId', 'order.id'], ['byCustomer', 'order.customer.id'], ['byMisspelt', 'order.di']]) {
  const found = Object.getOwnPropertyDescriptor(Service.prototype, method)
  Object.defineProperty(Service.prototype, method, MurLock(60000, key)(Service.prototype, method, found))
}
Injectable()(Service)

class Program {}
Module({
  imports: [MurLockModule.forRoot({ redisOptions: { socket }, wait: 1, maxAttempts: 1, logLevel: 'none' })],
  providers: [Service],
})(Program)

async function main() {
  const program = await NestFactory.createApplicationContext(Program, { logger: false })
  const service = program.get(Service)
  const client = await createClient({ socket }).connect()
  const orders = [1, 2].map((number) => ({ id: number, customer: { id: number } }))
  for (const method of ['byId', 'byCustomer', 'byMisspelt']) {
    console.log(method)
    const ends = []
    for (const order of orders) {
      const begins = new Promise((resolve) => { started = () => resolve('runs') })
      const call = service[method](order, 'urgent')
      const said = await Promise.race([begins, call.catch(() => 'refused')])
      console.log(`  order ${order.id}: ${said}`)
      if (said === 'runs') ends.push([finish, call])
    }
    console.log(`  keys: ${(await client.keys('*')).sort().join(', ')}`)
    for (const [end, call] of ends) {
      end()
      await call
    }
  }
  process.exit()
}

main()
END
node "$node_folder/run.cjs" "$redis" >"$scratch/said"

check "$scratch/said" <<'END'
byId
  order 1: runs
  order 2: runs
  keys: Service:byId:1, Service:byId:2
byCustomer
  order 1: runs
  order 2: refused
  keys: Service:byCustomer:[object Object]
byMisspelt
  order 1: runs
  order 2: refused
  keys: Service:byMisspelt:[object Object]
END
