#!/bin/sh
# Redisson: a nested lock() and unlock() end the outer lock early, here a lease of a minute after three seconds.
#
# Expected: RLock is reentrant.  A method that locks and unlocks what its caller holds leaves the caller's lock as it was:
#   until the caller's unlock(), or the end of the lease that the caller asked for.
# Found: lock(), whose lease the watchdog renews, sets the lease of the whole lock to lockWatchdogTimeout, also if 60 s of
#   it are left.  The inner unlock() sets it once more and stops the watchdog, so the lock ends by itself one
#   lockWatchdogTimeout later and another program gets it.  The outer unlock() then raises IllegalMonitorStateException.
#   Fair locks and write locks do the same; read locks keep the longer lease.
# Where: Redisson 4.7.0 (and 3.52.0), org.redisson.RedissonLock.  Each object of a lock has a lease of its own, which its
#   scripts give to PEXPIRE as it is, shorter or not.  If both calls use one RLock object, its unlock() mostly sets the
#   outer lease again.
# Why it matters: getLock(name) where it is needed, once in each method, is the usual way.  A long job that asked for ten
#   minutes runs together with another from 30 s (the default) after the first method that guards itself as well.

. "$(dirname "$0")/lib.sh"

install_java org.redisson:redisson:4.7.0 org.slf4j:slf4j-nop:2.0.17
start_redis
port=$((20000 + $$ % 10000))
redis-cli -s "$redis" config set port "$port" >"$scratch/log"

cat >"$scratch/Run.java" <<'END'
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

public class Run {
    interface Maker {
        RLock make(RedissonClient client);
    }

    static RedissonClient one, other;

    static void show(String title, boolean nests, Maker maker) throws InterruptedException {
        maker.make(one).lock(60, TimeUnit.SECONDS);
        if (nests) {
            maker.make(one).lock();
            maker.make(one).unlock();
        }
        System.out.println(title + (nests ? ", nested" : ""));
        System.out.println("  seconds left: " + Math.round(maker.make(one).remainTimeToLive() / 1000.0));
        Thread.sleep(5000);
        System.out.println("  5 s later another gets it: " + maker.make(other).tryLock());
        try {
            maker.make(one).unlock();
            System.out.println("  unlock() of the first: done");
        } catch (IllegalMonitorStateException e) {
            System.out.println("  unlock() of the first: IllegalMonitorStateException");
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        Config config = new Config();
        config.setLockWatchdogTimeout(3000);
        config.useSingleServer().setAddress("redis://127.0.0.1:" + arguments[0]);
        one = Redisson.create(config);
        other = Redisson.create(config);
        show("lock", false, client -> client.getLock("a"));
        show("lock", true, client -> client.getLock("b"));
        show("fair lock", true, client -> client.getFairLock("c"));
        show("write lock", true, client -> client.getReadWriteLock("d").writeLock());
        one.shutdown();
        other.shutdown();
    }
}
END
run_java "$scratch/Run.java" "$port" >"$scratch/said"

check "$scratch/said" <<'END'
lock
  seconds left: 60
  5 s later another gets it: false
  unlock() of the first: done
lock, nested
  seconds left: 3
  5 s later another gets it: true
  unlock() of the first: IllegalMonitorStateException
fair lock, nested
  seconds left: 3
  5 s later another gets it: true
  unlock() of the first: IllegalMonitorStateException
write lock, nested
  seconds left: 3
  5 s later another gets it: true
  unlock() of the first: IllegalMonitorStateException
END
