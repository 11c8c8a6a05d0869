#!/bin/sh
# Curator: while "/jobs/0" is in use, held or not, nobody gets the lock "/jobs"; "/jobs/1" and all others do no harm.
#
# Expected: locks of two paths have nothing to do with each other, and a lock that nobody holds can be had.
# Found: after one acquire() and release() of "/jobs/0", acquire() of "/jobs" does not succeed: it waits for the node
#   "/jobs/0", which is no lock.  With "/jobs/1" or "/jobs/nightly" in its place, held or not, it succeeds at once.
# Where: Curator 5.9.0, InterProcessMutex, on ZooKeeper 3.9.3.  All children of the lock's path, whatever they are, are
#   sorted in with those that wait for it, by names that end with ten digits there.  "0" is before "0000000000", and so
#   before everybody.  ZooKeeper removes an empty node about a minute after its last use.
# Why it matters: paths with a number for each part of the work begin with 0.  Whoever takes the lock of the whole now and
#   then, for a move or a backup, waits as long as the first part is in use, and never for the others, which go on.

. "$(dirname "$0")/lib.sh"

install_java org.apache.curator:curator-recipes:5.9.0 org.apache.curator:curator-test:5.9.0 org.slf4j:slf4j-nop:1.7.36
port=$((20000 + $$ % 10000))
cat >"$scratch/zoo.cfg" <<END
dataDir=$scratch/data
clientPort=$port
clientPortAddress=127.0.0.1
admin.enableServer=false
END
java -cp "$scratch/java/*" org.apache.zookeeper.server.ZooKeeperServerMain "$scratch/zoo.cfg" >"$scratch/zookeeper.log" 2>&1 &
servers="$! $servers"

cat >"$scratch/Run.java" <<'END'
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryNTimes;

public class Run {
    public static void main(String[] arguments) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.newClient("127.0.0.1:" + arguments[0], new RetryNTimes(100, 200));
        client.start();
        if (!client.blockUntilConnected(30, TimeUnit.SECONDS)) {
            System.exit(2);
        }
        for (String part : new String[] {"nightly", "1", "10", "0"}) {
            String whole = "/jobs-" + part;
            InterProcessMutex lock = new InterProcessMutex(client, whole + "/" + part);
            lock.acquire();
            lock.release();
            lock = new InterProcessMutex(client, whole);
            boolean got = lock.acquire(5, TimeUnit.SECONDS);
            System.out.println("after " + part + " was locked and released, the whole is free: " + got);
        }
        client.close();
    }
}
END
run_java "$scratch/Run.java" "$port" >"$scratch/said" 2>"$scratch/log" || give_up "Run.java: $(tail -n 1 "$scratch/log")"

check "$scratch/said" <<'END'
after nightly was locked and released, the whole is free: true
after 1 was locked and released, the whole is free: true
after 10 was locked and released, the whole is free: true
after 0 was locked and released, the whole is free: false
END
