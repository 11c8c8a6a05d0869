// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"math"
	"os"
	"sync"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncgoredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

var background = context.Background()

func address() string { return "127.0.0.1:" + os.Getenv("BENCH_PORT") }

// redsync, with unlimited tries and its own delays between them.
type redsyncLock struct{ mutex *redsync.Mutex }

// One client for all locks of the process; its pool has a connection for each command under way.
var redsyncOfProcess = sync.OnceValue(func() *redsync.Redsync {
	return redsync.New(redsyncgoredis.NewPool(goredis.NewClient(&goredis.Options{Addr: address()})))
})

func openRedsync(name string, lease time.Duration) locker {
	mutex := redsyncOfProcess().NewMutex(name, redsync.WithExpiry(lease), redsync.WithTries(math.MaxInt32))
	return &redsyncLock{mutex}
}

func (l *redsyncLock) lock() { must(l.mutex.Lock()) }

func (l *redsyncLock) unlock() {
	_, err := l.mutex.Unlock()
	must(err)
}

// rueidislock; one locker for all locks of the process; majority 0 is the default of the package, which is 2 of 3 keys.
type rueidisLock struct {
	locker rueidislock.Locker
	name   string
	cancel context.CancelFunc
}

func openRueidis(name string, lease time.Duration) locker      { return openMajority(name, lease, 0) }
func openRueidisOfOne(name string, lease time.Duration) locker { return openMajority(name, lease, 1) }

var rueidisOfProcess rueidislock.Locker

func openMajority(name string, lease time.Duration, majority int32) locker {
	if rueidisOfProcess == nil {
		l, err := rueidislock.NewLocker(rueidislock.LockerOption{
			ClientOption: rueidis.ClientOption{InitAddress: []string{address()}},
			KeyMajority:  majority,
			KeyValidity:  lease,
		})
		must(err)
		rueidisOfProcess = l
	}
	return &rueidisLock{locker: rueidisOfProcess, name: name}
}

func (l *rueidisLock) lock() {
	_, cancel, err := l.locker.WithContext(background, l.name)
	must(err)
	l.cancel = cancel
}

func (l *rueidisLock) unlock() { l.cancel() }

// etcd's recipe: a session with a lease, and a key for each waiter. A session is one owner.
type etcdLock struct{ mutex *concurrency.Mutex }

var etcdOfProcess = sync.OnceValue(func() *clientv3.Client {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"127.0.0.1:" + os.Getenv("BENCH_ETCD")}, Logger: zap.NewNop(),
	})
	must(err)
	return client
})

func openEtcd(name string, lease time.Duration) locker {
	session, err := concurrency.NewSession(etcdOfProcess(), concurrency.WithTTL(int(lease/time.Second)))
	must(err)
	return &etcdLock{concurrency.NewMutex(session, "/"+name)}
}

func (l *etcdLock) lock()   { must(l.mutex.Lock(background)) }
func (l *etcdLock) unlock() { must(l.mutex.Unlock(background)) }
