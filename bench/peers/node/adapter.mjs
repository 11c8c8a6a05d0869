// SPDX-License-Identifier: BSD-2-Clause
// The adapter of bench/peers for redlock, redis-semaphore and advisory-lock. README.md in the folder above has the
// commands and answers.
import fs from "node:fs";
import readline from "node:readline";
import { createRequire } from "node:module";
import Redis from "ioredis";

const LEASE_MS = 10000;
const load = createRequire(import.meta.url);
const [variant, command, ...words] = process.argv.slice(2);

// advisory-lock makes a connection for each lock that it takes.
function connect() {
  return variant === "advisory-lock" ? null : new Redis(Number(process.env.BENCH_PORT), "127.0.0.1");
}

// Each lock has acquire() and release(), and the defaults of its package, except for unlimited tries.
const kinds = {
  redlock(client, name, leaseMs) {
    const { default: Redlock } = load("redlock");
    const redlock = new Redlock([client], { retryCount: -1 });
    let lock;
    return {
      acquire: async () => (lock = await redlock.acquire([name], leaseMs)),
      release: () => lock.release(),
    };
  },
  "redis-semaphore"(client, name, leaseMs) {
    const { Mutex } = load("redis-semaphore");
    const mutex = new Mutex(client, name, { lockTimeout: leaseMs, acquireTimeout: 1e9 });
    return { acquire: () => mutex.acquire(), release: () => mutex.release() };
  },
  "advisory-lock"(client, name) {
    const { default: advisoryLock } = load("advisory-lock");
    const mutex = advisoryLock(`postgresql:///postgres?host=${process.env.BENCH_FOLDER}&user=postgres`)(name);
    return { acquire: () => mutex.lock(), release: () => mutex.unlock() };
  },
};

function makeLock(name, leaseMs = LEASE_MS, client = connect()) {
  return kinds[variant](client, name, leaseMs);
}

async function sayReadyAndAwaitGo() {
  const lines = readline.createInterface({ input: process.stdin });
  const line = new Promise((resolve) => lines.once("line", resolve));
  console.log("ready");
  await line;
  lines.close();
  process.stdin.unref();
}

async function pairsUntil(lock, end) {
  let pairs = 0;
  for (; performance.now() < end; pairs++) {
    await lock.acquire();
    await lock.release();
  }
  return pairs;
}

// Pairs of all locks at once, for each line.
async function timePairs(locks, seconds) {
  console.log("ready");
  for await (const _ of readline.createInterface({ input: process.stdin })) {
    const start = performance.now();
    const counts = await Promise.all(locks.map((lock) => pairsUntil(lock, start + seconds * 1000)));
    console.log(`${counts.reduce((sum, count) => sum + count)} ${(performance.now() - start) / 1000}`);
  }
}

const commands = {
  async pair(seconds) {
    await timePairs([makeLock("pair")], Number(seconds));
  },

  async pairs(seconds, count) {
    const client = connect(); // one connection for all
    const locks = Array.from({ length: Number(count) }, (_, i) => makeLock(`pairs-${i}`, LEASE_MS, client));
    await timePairs(locks, Number(seconds));
  },

  async contend(seconds, name, path, number) {
    const lock = makeLock(name);
    const file = fs.openSync(path, "r+");
    const own = Buffer.from([Number(number)]);
    const last = Buffer.alloc(1);
    let acquired = 0;
    let handovers = 0;
    await lock.acquire();
    await lock.release();
    await sayReadyAndAwaitGo();
    const end = performance.now() + seconds * 1000;
    for (;; acquired++) {
      await lock.acquire();
      if (performance.now() >= end) break;
      fs.readSync(file, last, 0, 1, 0);
      if (last[0] !== own[0]) {
        fs.writeSync(file, own, 0, 1, 0);
        handovers++;
      }
      await lock.release();
    }
    await lock.release();
    console.log(`${acquired} ${handovers}`);
  },

  async hold(name, leaseMs) {
    await makeLock(name, Number(leaseMs)).acquire();
    console.log("held");
    await new Promise((resolve) => setTimeout(resolve, 1e9));
  },

  async wait(name, leaseMs) {
    const lock = makeLock(name, Number(leaseMs));
    await sayReadyAndAwaitGo();
    await lock.acquire();
    console.log("got");
  },

  async idle(name, leaseMs, count) {
    for (let i = 0; i < Number(count); i++) makeLock(name, Number(leaseMs)).acquire();
    await sayReadyAndAwaitGo();
  },

  async version() {
    const path = new URL(`node_modules/${variant}/package.json`, import.meta.url);
    console.log(`${variant} ${JSON.parse(fs.readFileSync(path)).version}`);
  },
};

await commands[command](...words);
process.exit(0);
