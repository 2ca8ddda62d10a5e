package io.faro.cluster;

import io.faro.e2e.FaroCounters;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;

/**
 * The job of `docker compose run submit`: shuffles rows that it can check without another run of
 * the same thing, and prints which way their bytes went. Ends with DEMO OK and 0, or with 1.
 */
public final class ClusterDemo {
    private static final int EXECUTORS = 2;
    private static final long PATIENCE_MS = 300_000;

    private ClusterDemo() {}

    public static void main(String[] args) throws InterruptedException {
        int rows = option(args, "--rows", 1_000_000, 1_000, 1_000_000_000);
        int rounds = option(args, "--rounds", 2, 1, 1_000);
        int partitions = option(args, "--partitions", 16, 2, 10_000);
        SparkConf conf = new SparkConf().setAppName("faro-cluster-demo");
        // A fabric is for executors of different hosts; of one host they would read the files.
        conf.set("spark.shuffle.readHostLocalDisk", "false");
        JavaSparkContext spark = new JavaSparkContext(conf);
        Watcher watcher = new Watcher();
        spark.sc().addSparkListener(watcher);
        boolean right = true;
        try {
            awaitExecutors(spark);
            System.out.printf("Spark %s, %d rows, %d partitions, %d rounds on %d executors%n",
                spark.version(), rows, partitions, rounds, executors(spark));
            Steps steps = new Steps(spark, rows, partitions);
            for (int round = 1; round <= rounds; round++) {
                right &= run(watcher, round + "/" + rounds + " group", steps::group);
                right &= run(watcher, round + "/" + rounds + " sort", steps::sort);
            }
            report(spark, watcher);
        } finally {
            spark.stop();
        }
        System.out.println(right ? "DEMO OK" : "DEMO FAILED");
        System.exit(right ? 0 : 1);
    }

    /** Runs a step that tells what is wrong with its result, or null. */
    private static boolean run(Watcher watcher, String name, Step step) {
        watcher.step = name;
        long start = System.nanoTime();
        String wrong;
        try {
            wrong = step.run();
        } catch (RuntimeException e) {
            e.printStackTrace();
            wrong = String.valueOf(e.getMessage()).split("\n")[0];
        }
        System.out.printf("step %s: %s, %.1f s%n", name, wrong == null ? "right" : "WRONG: " + wrong,
            (System.nanoTime() - start) / 1e9);
        return wrong == null;
    }

    private static void report(JavaSparkContext spark, Watcher watcher) {
        TreeMap<String, Double> total = new TreeMap<>();
        for (Map<String, Double> one : FaroCounters.ofExecutors(spark).values()) {
            one.forEach((key, value) -> total.merge(key, value, Double::sum));
        }
        System.out.printf("%nremote blocks  %12s %16s%n", "blocks", "bytes");
        for (String fabric : Arrays.asList("verbs", "tcp", "shm")) {
            line("Faro " + fabric, total, "remoteBlocks." + fabric, "remoteBytes." + fabric);
        }
        System.out.printf("%-14s %12s %16d%n", "all, by Spark", "", watcher.remoteBytes.get());
        System.out.printf("fall-backs to Spark's own fetch: %.0f%n",
            total.getOrDefault("fallbacks", 0.0));
        total.forEach((key, value) -> {
            if (key.startsWith("fallbackReason.") && value > 0) {
                System.out.printf("  %s: %.0f%n", key.substring("fallbackReason.".length()), value);
            }
        });
        System.out.printf("executors lost: %d, stages run again: %d%n",
            watcher.lost.get(), watcher.repeated.get());
        if (watcher.lost.get() > 0) {
            System.out.println("(Faro's lines are those of the executors that live)");
        }
    }

    private static void line(String name, Map<String, Double> of, String blocks, String bytes) {
        System.out.printf("%-14s %12.0f %16.0f%n", name, of.getOrDefault(blocks, 0.0),
            of.getOrDefault(bytes, 0.0));
    }

    private static int executors(JavaSparkContext spark) {
        return spark.sc().statusTracker().getExecutorInfos().length - 1;
    }

    private static void awaitExecutors(JavaSparkContext spark) throws InterruptedException {
        long end = System.currentTimeMillis() + PATIENCE_MS;
        while (executors(spark) < EXECUTORS) {
            if (System.currentTimeMillis() > end) {
                System.out.printf("%d executors within %d s, %d are needed; are the workers up? "
                    + "docker compose up -d%n", executors(spark), PATIENCE_MS / 1000, EXECUTORS);
                spark.stop();
                System.exit(1);
            }
            Thread.sleep(100);
        }
    }

    private static int option(String[] args, String name, int normal, int min, int max) {
        int at = Arrays.asList(args).indexOf(name);
        for (int i = 0; i < args.length; i += 2) {
            if (!Arrays.asList("--rows", "--rounds", "--partitions").contains(args[i])) {
                refuse(args[i] + " is no option; --rows, --rounds and --partitions are");
            }
        }
        if (at < 0) {
            return normal;
        }
        String text = at + 1 < args.length ? args[at + 1] : "nothing";
        try {
            int value = Integer.parseInt(text);
            if (value >= min && value <= max) {
                return value;
            }
        } catch (NumberFormatException e) {
            // Told below, with the text.
        }
        refuse(name + " " + text + ": " + min + " to " + max + " are possible");
        return normal;
    }

    private static void refuse(String why) {
        System.err.println("submit: " + why);
        System.exit(2);
    }

    /** A shuffle and what is wrong with its result, or null. */
    private interface Step {
        String run();
    }
}
