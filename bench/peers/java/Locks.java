// SPDX-License-Identifier: BSD-2-Clause

import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryNTimes;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** One lock, with the defaults of its package; a thread is an owner. All locks of the process share a client. */
interface Locks {
    void lock() throws Exception;

    void unlock() throws Exception;

    static Locks open(String variant, String name, int leaseMs) throws Exception {
        switch (variant) {
        case "rlock":
            return new OfRedisson(OfRedisson.connect(leaseMs).getLock(name));
        case "rfairlock":
            return new OfRedisson(OfRedisson.connect(leaseMs).getFairLock(name));
        case "curator":
            return new OfCurator(OfCurator.connect(leaseMs), name);
        default:
            throw new IllegalArgumentException(variant);
        }
    }

    final class OfRedisson implements Locks {
        private static RedissonClient client;
        private final RLock lock;

        static RedissonClient connect(int leaseMs) {
            if (client == null) {
                Config config = new Config();
                config.setLockWatchdogTimeout(leaseMs);
                config.useSingleServer().setAddress("redis://127.0.0.1:" + System.getenv("BENCH_PORT"));
                client = Redisson.create(config);
            }
            return client;
        }

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
        private static CuratorFramework client;
        private final InterProcessMutex mutex;

        static CuratorFramework connect(int leaseMs) throws Exception {
            if (client == null) {
                client = CuratorFrameworkFactory.newClient("127.0.0.1:" + System.getenv("BENCH_ZOOKEEPER"), leaseMs,
                                                           10000, new RetryNTimes(10, 100));
                client.start();
                client.blockUntilConnected();
            }
            return client;
        }

        OfCurator(CuratorFramework client, String name) {
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
