// SPDX-License-Identifier: BSD-2-Clause

// The adapter of bench/peers for redsync, rueidislock and etcd. README.md in the folder above has the commands and
// answers.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

const lease = 10 * time.Second

// locker is one lock as one owner.
type locker interface {
	lock()
	unlock()
}

type kind struct {
	open     func(name string, lease time.Duration) locker
	module   string
	isShared bool // one locker serves all waiters of a process
}

var kinds = map[string]kind{
	"redsync":       {openRedsync, "github.com/go-redsync/redsync/v4", false},
	"rueidislock":   {openRueidis, "github.com/redis/rueidis/rueidislock", true},
	"rueidislock-1": {openRueidisOfOne, "github.com/redis/rueidis/rueidislock", true},
	"etcd":          {openEtcd, "go.etcd.io/etcd/client/v3", false},
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "adapter:", err)
		os.Exit(1)
	}
}

func sayReadyAndAwaitGo() {
	fmt.Println("ready")
	_, err := bufio.NewReader(os.Stdin).ReadString('\n')
	must(err)
}

func secondsOf(word string) time.Duration {
	seconds, err := strconv.ParseFloat(word, 64)
	must(err)
	return time.Duration(seconds * float64(time.Second))
}

func leaseOf(word string) time.Duration {
	ms, err := strconv.Atoi(word)
	must(err)
	return time.Duration(ms) * time.Millisecond
}

func pairsFor(l locker, duration time.Duration) string {
	start := time.Now()
	pairs := 0
	for ; time.Since(start) < duration; pairs++ {
		l.lock()
		l.unlock()
	}
	return fmt.Sprint(pairs, " ", time.Since(start).Seconds())
}

func pair(k kind, words []string) {
	l := k.open("pair", lease)
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(pairsFor(l, secondsOf(words[0])))
	}
}

func contend(k kind, words []string) {
	l := k.open(words[1], lease)
	file, err := os.OpenFile(words[2], os.O_RDWR, 0)
	must(err)
	number, err := strconv.Atoi(words[3])
	must(err)
	own, last := []byte{byte(number)}, []byte{0}
	acquired, handovers := 0, 0
	l.lock()
	l.unlock()
	sayReadyAndAwaitGo()
	for end := time.Now().Add(secondsOf(words[0])); ; acquired++ {
		l.lock()
		if !time.Now().Before(end) {
			break
		}
		_, err = file.ReadAt(last, 0)
		must(err)
		if last[0] != own[0] {
			_, err = file.WriteAt(own, 0)
			must(err)
			handovers++
		}
		l.unlock()
	}
	l.unlock()
	fmt.Println(acquired, handovers)
}

func hold(k kind, words []string) {
	k.open(words[0], leaseOf(words[1])).lock()
	fmt.Println("held")
	select {}
}

func wait(k kind, words []string) {
	l := k.open(words[0], leaseOf(words[1]))
	sayReadyAndAwaitGo()
	l.lock()
	fmt.Println("got")
}

func idle(k kind, words []string) {
	count, err := strconv.Atoi(words[2])
	must(err)
	l := k.open(words[0], leaseOf(words[1]))
	for i := 0; i < count; i++ {
		if !k.isShared {
			l = k.open(words[0], leaseOf(words[1]))
		}
		go l.lock()
	}
	sayReadyAndAwaitGo()
}

func version(k kind, _ []string) {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if strings.HasPrefix(k.module, module.Path) {
			fmt.Println(k.module, module.Version)
		}
	}
}

func main() {
	commands := map[string]func(kind, []string){
		"pair": pair, "contend": contend, "hold": hold, "wait": wait, "idle": idle, "version": version,
	}
	commands[os.Args[2]](kinds[os.Args[1]], os.Args[3:])
}
