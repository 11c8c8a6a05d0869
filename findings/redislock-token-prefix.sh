#!/bin/sh
# redislock (Go): "worker-1" gets the lock that "worker-10" holds, because its token is the beginning of the other's.
#
# Expected: Options.Token names an owner. A lock that is held under one token is refused to all other tokens.
# Found: Obtain() with a token that is a beginning of the holder's succeeds, for the second one with its own token and
#   time to live. The first owner's Release() then says that it does not hold the lock. The other way round, "worker-10"
#   is refused while "worker-1" holds the lock without metadata.
# Where: github.com/bsm/redislock 0.9.4, redislock.go, luaObtain. For an owner that asks again it compares as many bytes
#   of the value as the caller's token has; the value is token and metadata, joined without a mark between them.
# Why it matters: tokens of one's own are for owners that want the lock again after a restart, and are names of hosts or
#   pods with a number. Random tokens, which are all of one length, hide it.

. "$(dirname "$0")/lib.sh"

need go
start_redis
mkdir "$scratch/run"
cat >"$scratch/run/main.go" <<'END'
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

func main() {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: os.Args[1]})
	obtain := func(name, token string) *redislock.Lock {
		lock, err := redislock.Obtain(ctx, client, name, time.Minute, &redislock.Options{Token: token})
		if errors.Is(err, redislock.ErrNotObtained) {
			fmt.Printf("  %s: refused\n", token)
		} else if err != nil {
			panic(err)
		} else {
			fmt.Printf("  %s: obtained\n", token)
		}
		return lock
	}
	fmt.Println("worker-10 is first")
	first := obtain("down", "worker-10")
	obtain("down", "worker-2")
	obtain("down", "worker-1")
	fmt.Println("  on the server:", client.Get(ctx, "down").Val())
	fmt.Println("  release by worker-10:", first.Release(ctx))
	fmt.Println("worker-1 is first")
	obtain("up", "worker-1")
	obtain("up", "worker-10")
}
END
export GOPATH="$scratch/go" GOCACHE="$scratch/go/cache" GOFLAGS="-modcacherw -mod=mod"
(cd "$scratch/run" && go mod init finding && go get github.com/bsm/redislock@v0.9.4 github.com/redis/go-redis/v9@v9.23.0 &&
    go build -o run .) >"$scratch/log" 2>&1 || give_up "go cannot build it: $(tail -n 1 "$scratch/log")"
"$scratch/run/run" "$redis" >"$scratch/said"

check "$scratch/said" <<'END'
worker-10 is first
  worker-10: obtained
  worker-2: refused
  worker-1: obtained
  on the server: worker-1
  release by worker-10: redislock: lock not held
worker-1 is first
  worker-1: obtained
  worker-10: refused
END
