#!/bin/sh
# Lua on redis-server: tokens joined to a string lose digits, so two owners get the same token; test servers hide it.
#
# Expected: `'owner:' .. redis.call('incr', KEYS[1])` has the whole number, as SET with the same number has.
# Found: from 15 digits on, redis-server 7.0.15 joins "1.7958329385332e+15", the same text for many tokens in a row,
#   though SET and the reply of EVAL have all digits. miniredis joins all digits; ioredis-mock rounds in another way and
#   joins ".0" to small tokens as well. So the comparison of an owner that passes on a test server is always true, or
#   never, on the real one.
# Where: Lua 5.1 in redis-server formats with "%.14g" where it joins; redis-server 7.0.15, src/script_lua.c,
#   luaArgsToRedisArgv(), with "%.17g" for arguments. miniredis 2.40.0 uses gopher-lua 1.1.1, value.go,
#   LNumber.String(). ioredis-mock 8.13.1 runs scripts with fengari, a Lua 5.3, and gives it numbers as floats.
# Why it matters: fencing tokens made of a clock in microseconds have 16 digits. A resource that compares such a token
#   lets an old holder in.

. "$(dirname "$0")/lib.sh"

need go
install_node ioredis-mock@8.13.1 ioredis@5.8.2
mkdir "$scratch/mini"
cat >"$scratch/mini/main.go" <<'END'
package main

import (
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
)

func main() {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	fmt.Println(server.Port())
	time.Sleep(10 * time.Minute)
}
END
export GOPATH="$scratch/go" GOCACHE="$scratch/go/cache" GOFLAGS="-modcacherw -mod=mod"
(cd "$scratch/mini" && go mod init finding && go get github.com/alicebob/miniredis/v2@v2.40.0 && go build -o server .) \
    >"$scratch/log" 2>&1 || give_up "go cannot build miniredis: $(tail -n 1 "$scratch/log")"
"$scratch/mini/server" >"$scratch/port" &
servers="$servers $!"
wait_for test -s "$scratch/port"
start_redis

cat >"$node_folder/run.mjs" <<'END'
import Redis from 'ioredis'
import Mock from 'ioredis-mock'

const join = "return 'me:' .. redis.call('incr', KEYS[1])"
const store = "redis.call('set', KEYS[2], redis.call('incr', KEYS[1])) return redis.call('get', KEYS[2])"
for (const [title, client] of [['redis-server', new Redis(process.argv[2])], ['miniredis', new Redis(process.argv[3])],
  ['ioredis-mock', new Mock()]]) {
  console.log(title)
  console.log(`  first token joined: ${await client.eval(join, 1, 'small')}`)
  await client.set('token', '1795832938533192')
  const one = await client.eval(join, 1, 'token')
  const two = await client.eval(join, 1, 'token')
  console.log(`  two of 16 digits joined: ${one} ${two}, ${one === two ? 'alike' : 'not alike'}`)
  console.log(`  the next stored: ${await client.eval(store, 2, 'token', 'copy')}`)
  client.disconnect()
}
END
node "$node_folder/run.mjs" "$redis" "$(cat "$scratch/port")" >"$scratch/said"

check "$scratch/said" <<'END'
redis-server
  first token joined: me:1
  two of 16 digits joined: me:1.7958329385332e+15 me:1.7958329385332e+15, alike
  the next stored: 1795832938533195
miniredis
  first token joined: me:1
  two of 16 digits joined: me:1795832938533193 me:1795832938533194, not alike
  the next stored: 1795832938533195
ioredis-mock
  first token joined: me:1.0
  two of 16 digits joined: me:1795832938533200.0 me:1795832938533200.0, alike
  the next stored: 1795832938533195
END
