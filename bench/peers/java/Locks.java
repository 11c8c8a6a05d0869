// SPDX-License-Identifier: BSD-2-Clause

import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryNTimes;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** One lock as one owner, with the defaults of its package. */
interface Locks {
    void lock() throws Exception;

    void unlock() throws Exception;

    static Locks open(String variant, String name, int leaseMs) throws Exception {
        switch (variant) {
        case "rlock":
            return new OfRedisson(connect(leaseMs).getLock(name));
        case "rfairlock":
            return new OfRedisson(connect(leaseMs).getFairLock(name));
        case "curator":
            return new OfCurator(name, leaseMs);
        default:
            throw new IllegalArgumentException(variant);
        }
    }


    private static RedissonClient connect(int leaseMs) {
        Config config = new Config();
        config.setLockWatchdogTimeout(leaseMs);
        config.useSingleServer().setAddress("redis://127.0.0.1:" + System.getenv("BENCH_PORT"));
        return Redisson.create(config);
    }

    final class OfRedisson implements Locks {
        private final RLock lock;

        OfRedisson(RLock lock) {
            this.lock = lock;
        }

        @Override
        public void lock() {
            lock.lock();
        }

        @Override
        public void unlock() {
            lock.unlock();
        }
    }

    final class OfCurator implements Locks {
        private final InterProcessMutex mutex;

        OfCurator(String name, int leaseMs) throws Exception {
            CuratorFramework client = CuratorFrameworkFactory.newClient(
                "127.0.0.1:" + System.getenv("BENCH_ZOOKEEPER"), leaseMs, 10000, new RetryNTimes(10, 100));
            client.start();
            client.blockUntilConnected();
            mutex = new InterProcessMutex(client, "/" + name);
        }

        @Override
        public void lock() throws Exception {
            mutex.acquire();
        }

        @Override
        public void unlock() throws Exception {
            mutex.release();
        }
    }
}
