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
	"sync"
	"sync/atomic"
	"time"
)

const lease = 10 * time.Second

// locker is one lock as one owner.
type locker interface {
	lock()
	unlock()
}

// kind makes locks that share what exists once per process.
type kind struct {
	open   func(name string, lease time.Duration) locker
	module string
}

var kinds = map[string]kind{
	"redsync":       {openRedsync, "github.com/go-redsync/redsync/v4"},
	"rueidislock":   {openRueidis, "github.com/redis/rueidis/rueidislock"},
	"rueidislock-1": {openRueidisOfOne, "github.com/redis/rueidis/rueidislock"},
	"etcd":          {openEtcd, "go.etcd.io/etcd/client/v3"},
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

// pairsFor has a goroutine for each lock.
func pairsFor(locks []locker, duration time.Duration) string {
	var total atomic.Int64
	var group sync.WaitGroup
	start := time.Now()
	for _, l := range locks {
		group.Go(func() {
			pairs := int64(0)
			for ; time.Since(start) < duration; pairs++ {
				l.lock()
				l.unlock()
			}
			total.Add(pairs)
		})
	}
	group.Wait()
	return fmt.Sprint(total.Load(), " ", time.Since(start).Seconds())
}

func timePairs(locks []locker, duration time.Duration) {
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(pairsFor(locks, duration))
	}
}

func pair(k kind, words []string) {
	timePairs([]locker{k.open("pair", lease)}, secondsOf(words[0]))
}

func pairs(k kind, words []string) {
	count, err := strconv.Atoi(words[1])
	must(err)
	locks := make([]locker, count)
	for i := range locks {
		locks[i] = k.open(fmt.Sprint("pairs-", i), lease)
	}
	timePairs(locks, secondsOf(words[0]))
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
	for i := 0; i < count; i++ {
		go k.open(words[0], leaseOf(words[1])).lock()
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
		"pair": pair, "pairs": pairs, "contend": contend, "hold": hold, "wait": wait, "idle": idle, "version": version,
	}
	commands[os.Args[2]](kinds[os.Args[1]], os.Args[3:])
}
