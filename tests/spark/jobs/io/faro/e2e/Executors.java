package io.faro.e2e;

import java.io.File;
import java.io.IOException;
import java.io.Serializable;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Tuple2;

/** The executors as processes of this machine. */
final class Executors {
    private Executors() {}

    static String pid() {
        return ManagementFactory.getRuntimeMXBean().getName().split("@")[0];
    }

    static boolean alive(String pid) {
        return new File("/proc/" + pid).exists();
    }

    static void signal(String pid, String name) throws IOException, InterruptedException {
        int code = new ProcessBuilder("kill", "-" + name, pid).inheritIO().start().waitFor();
        if (code != 0) {
            throw new IOException("kill -" + name + " " + pid + ": exit code " + code);
        }
    }

    static int registered(JavaSparkContext jsc) {
        // The driver is in the list too.
        return jsc.sc().statusTracker().getExecutorInfos().length - 1;
    }

    /** Process ids by executor id, of {@code count} executors. */
    static Map<String, String> pids(JavaSparkContext jsc, int count) throws Exception {
        Map<String, String> pids = new TreeMap<>();
        Check.await(count + " executors should run tasks", () -> {
            List<Integer> tasks = new ArrayList<>();
            for (int i = 0; i < 8; i++) {
                tasks.add(i);
            }
            for (Tuple2<String, String> one : jsc.parallelize(tasks, tasks.size())
                    .map(i -> new Tuple2<>(SparkEnv.get().executorId(), pid())).collect()) {
                pids.put(one._1(), one._2());
            }
            pids.values().removeIf(pid -> !alive(pid));
            return pids.size() >= count;
        });
        return pids;
    }

    /** What the processes of the executors hold, the most of any. */
    static final class Use implements Serializable {
        final int descriptors;
        final int threads;

        private Use(int descriptors, int threads) {
            this.descriptors = descriptors;
            this.threads = threads;
        }

        @Override
        public String toString() {
            return descriptors + " descriptors, " + threads + " threads";
        }
    }

    static Use use(JavaSparkContext jsc) {
        List<Integer> tasks = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            tasks.add(i);
        }
        return jsc.parallelize(tasks, tasks.size()).map(i -> {
            String[] open = new File("/proc/self/fd").list();
            // Spark drops many blocks at once by up to 128 threads, which stay for a minute.
            long threads = Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> !thread.getName().startsWith("block-manager-")).count();
            return new Use(open == null ? 0 : open.length, (int) threads);
        }).reduce((a, b) -> new Use(Math.max(a.descriptors, b.descriptors), Math.max(a.threads, b.threads)));
    }

    /** Waits until no executor holds memory of tasks that have ended. */
    static void awaitReturnedLeases(JavaSparkContext jsc) throws Exception {
        Check.awaitReturn("leases of ended tasks should go back", () -> {
            for (Map<String, Double> counters : FaroCounters.ofExecutors(jsc).values()) {
                double leased = counters.getOrDefault("pool.leasedBytes", 0.0)
                    - counters.getOrDefault("region.cachedBytes", 0.0)
                    - counters.getOrDefault("connectionBytes", 0.0);
                if (leased > 4 << 20) {
                    return false;
                }
            }
            return true;
        });
    }
}
