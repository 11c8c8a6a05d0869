// SPDX-License-Identifier: BSD-2-Clause

import java.io.File;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Scanner;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** The adapter of bench/peers for Redisson and Curator. README.md in the folder above has the commands and answers. */
public final class Adapter {
    private static final int LEASE_MS = 10000;

    private static void sayReadyAndAwaitGo() {
        System.out.println("ready");
        new Scanner(System.in).nextLine();
    }

    private static double secondsSince(long start) {
        return (System.nanoTime() - start) / 1e9;
    }

    private static long pairsUntil(Locks lock, long start, double seconds) throws Exception {
        long pairs = 0;
        for (; secondsSince(start) < seconds; pairs++) {
            lock.lock();
            lock.unlock();
        }
        return pairs;
    }

    private static String pairsFor(ExecutorService pool, List<Locks> locks, double seconds) throws Exception {
        List<Callable<Long>> tasks = new ArrayList<>();
        long start = System.nanoTime();
        long pairs = 0;
        for (Locks lock : locks)
            tasks.add(() -> pairsUntil(lock, start, seconds));
        for (Future<Long> result : pool.invokeAll(tasks))
            pairs += result.get();
        return pairs + " " + secondsSince(start);
    }

    /** Each lock has a thread. */
    private static void timePairs(List<Locks> locks, double seconds) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(locks.size());
        pairsFor(pool, locks, 2); // until the compiler is done
        System.out.println("ready");
        for (Scanner lines = new Scanner(System.in); lines.hasNextLine(); lines.nextLine())
            System.out.println(pairsFor(pool, locks, seconds));
    }

    private static void pair(String variant, String[] words) throws Exception {
        timePairs(List.of(Locks.open(variant, "pair", LEASE_MS)), Double.parseDouble(words[2]));
    }

    private static void pairs(String variant, String[] words) throws Exception {
        List<Locks> locks = new ArrayList<>();
        for (int i = 0; i < Integer.parseInt(words[3]); i++)
            locks.add(Locks.open(variant, "pairs-" + i, LEASE_MS));
        timePairs(locks, Double.parseDouble(words[2]));
    }

    private static void contend(String variant, String[] words) throws Exception {
        Locks lock = Locks.open(variant, words[3], LEASE_MS);
        double seconds = Double.parseDouble(words[2]);
        byte own = (byte)Integer.parseInt(words[5]);
        ByteBuffer last = ByteBuffer.allocateDirect(1);
        int acquired = 0;
        int handovers = 0;
        try (FileChannel file =
                 FileChannel.open(Path.of(words[4]), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            lock.lock();
            lock.unlock();
            sayReadyAndAwaitGo();
            for (long start = System.nanoTime();; acquired++) {
                lock.lock();
                if (secondsSince(start) >= seconds)
                    break;
                file.read(last.clear(), 0);
                if (last.get(0) != own) {
                    file.write(last.clear().put(0, own), 0);
                    handovers++;
                }
                lock.unlock();
            }
            lock.unlock();
        }
        System.out.println(acquired + " " + handovers);
    }

    private static void hold(String variant, String[] words) throws Exception {
        Locks.open(variant, words[2], Integer.parseInt(words[3])).lock();
        System.out.println("held");
        Thread.sleep(Long.MAX_VALUE);
    }

    private static void waitFor(String variant, String[] words) throws Exception {
        Locks lock = Locks.open(variant, words[2], Integer.parseInt(words[3]));
        sayReadyAndAwaitGo();
        lock.lock();
        System.out.println("got");
    }

    private static void idle(String variant, String[] words) throws Exception {
        Locks lock = Locks.open(variant, words[2], Integer.parseInt(words[3])); // one client, as an application has
        for (int i = 0; i < Integer.parseInt(words[4]); i++) {
            Thread thread = new Thread(() -> {
                try {
                    lock.lock();
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
        sayReadyAndAwaitGo();
    }

    /** Of the jar's name, such as redisson-4.7.0.jar. */
    private static void version(String variant) {
        String prefix = variant.equals("curator") ? "curator-recipes-" : "redisson-";
        for (String path : System.getProperty("java.class.path").split(":")) {
            String name = new File(path).getName();
            if (name.matches(prefix + "[0-9].*\\.jar"))
                System.out.println(prefix.replaceAll("-$", " ") + name.substring(prefix.length()).replace(".jar", ""));
        }
    }

    public static void main(String[] words) throws Exception {
        String variant = words[0];
        switch (words[1]) {
        case "pair" -> pair(variant, words);
        case "pairs" -> pairs(variant, words);
        case "contend" -> contend(variant, words);
        case "hold" -> hold(variant, words);
        case "wait" -> waitFor(variant, words);
        case "idle" -> idle(variant, words);
        case "version" -> version(variant);
        default -> System.exit(2);
        }
        Runtime.getRuntime().halt(0);
    }
}
