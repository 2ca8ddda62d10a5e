package io.faro.e2e;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.util.LongAccumulator;
import scala.Tuple2;

/** Executors that die after the map stage, with their files, where a node service keeps what they wrote. */
final class NodeServiceCases {
    private NodeServiceCases() {}

    static void register(Map<String, Jobs.Case> cases) {
        cases.put("outputsOutliveOne", c -> outlive(c.jsc, 1));
        cases.put("outputsOutliveAll", c -> outlive(c.jsc, 2));
        cases.put("rowsOutliveAll", c -> rowsOutlive(c.spark, c.jsc));
        cases.put("serviceKilled", c -> serviceKilled(c.jsc, c.scratch.toString()));
        cases.put("hostLost", c -> hostLost(c.jsc, c.scratch.toString()));
        cases.put("rollingUpgrade", c -> rollingUpgrade(c.jsc, c.scratch));
        cases.put("nothingKept", c -> nothingKept(c.jsc, new File(c.scratch, "kept/applications")));
        cases.put("emptyHost", c -> emptyHost(c.jsc, new File(c.scratch, "kept/applications")));
    }

    /** The second action finds the map stage done, although {@code victims} executors and their files are gone. */
    private static void outlive(JavaSparkContext jsc, int victims) throws Exception {
        LongAccumulator maps = jsc.sc().longAccumulator("map tasks");
        JavaPairRDD<Integer, Iterable<Long>> grouped = counted(jsc, maps);
        Check.equal("before", RddCases.expected(), digests(grouped));
        Check.equal("map tasks", 8L, maps.value());
        kill(jsc, victims);
        Check.equal("after", RddCases.expected(), digests(grouped));
        Check.equal("map tasks in all", 8L, maps.value());
    }

    /**
     * After a map stage one executor dies. Then the service is killed while another stage begins, and started again; then
     * all executors die. Both stages are done: the new service finds the links of the first, of the executor that never
     * saw it too, and the second waits for it.
     */
    private static void serviceKilled(JavaSparkContext jsc, String scratch) throws Exception {
        LongAccumulator maps = jsc.sc().longAccumulator("map tasks");
        JavaPairRDD<Integer, Iterable<Long>> before = counted(jsc, maps);
        Check.equal("before", RddCases.expected(), digests(before));
        kill(jsc, 1);
        Executors.signal(daemon(scratch), "KILL");
        JavaPairRDD<Integer, Iterable<Long>> after = counted(jsc, maps);
        Check.equal("meanwhile", RddCases.expected(), digests(after));
        Check.equal("map tasks", 16L, maps.value());
        kill(jsc, 2);
        Check.equal("written before the service was killed", RddCases.expected(), digests(before));
        Check.equal("written afterwards", RddCases.expected(), digests(after));
        Check.equal("map tasks in all", 16L, maps.value());
    }

    /**
     * Two hosts, each with its service. When each output has a copy on the other host, one host goes: its service, its
     * executors and all their files.
     */
    private static void hostLost(JavaSparkContext jsc, String scratch) throws Exception {
        LongAccumulator maps = jsc.sc().longAccumulator("map tasks");
        JavaPairRDD<Integer, Iterable<Long>> grouped = counted(jsc, maps);
        Check.equal("before", RddCases.expected(), digests(grouped));
        Check.equal("map tasks", 8L, maps.value());
        File[] hosts = new File(scratch).listFiles((dir, name) -> name.startsWith("host-"));
        Check.await("each output should have a copy", () -> {
            int copies = 0;
            for (File host : hosts) {
                copies += links(new File(host, "kept/applications"), "replica_");
            }
            return copies == 8;
        });
        Map<String, String> pids = Executors.pids(jsc, 2);
        Map<String, String> services = services(jsc);
        String victim = pids.keySet().iterator().next();
        File host = new File(services.get(victim)).getParentFile();
        File kept = new File(host, "kept/applications");
        Check.that("it keeps outputs of its own", links(kept, "") > links(kept, "replica_"));
        List<String> chosen = new ArrayList<>();
        services.forEach((executor, service) -> {
            if (service.equals(services.get(victim))) {
                chosen.add(executor);
            }
        });
        Map<String, List<String>> directories = directories(jsc);
        // Not KILL: the supervisor of the tests would start it again.
        Executors.signal(daemon(host.getPath()), "QUIT");
        kill(jsc, pids, directories, chosen);
        delete(new File(host, "kept"));
        Check.equal("after", RddCases.expected(), digests(grouped));
        Check.equal("map tasks in all", 8L, maps.value());
    }

    /**
     * One of several applications that share two hosts, each with its service. In the middle of a stage of each, one
     * service after the other is replaced by that of the next release, then the first one by this release's again. At
     * the end executors are killed with their files: all that was written before and after each step was computed once.
     */
    private static void rollingUpgrade(JavaSparkContext jsc, File scratch) throws Exception {
        String[][] steps = {{"host-0", "newer"}, {"host-1", "newer"}, {"host-0", ""}};
        int at = jsc.getConf().getInt("spark.e2e.at", 0);
        int applications = jsc.getConf().getInt("spark.e2e.of", 1);
        boolean hasService = jsc.getConf().contains("spark.faro.service.directory");
        Map<Integer, List<Long>> expected = RddCases.expected();
        LongAccumulator maps = jsc.sc().longAccumulator("map tasks");
        List<JavaPairRDD<Integer, Iterable<Long>>> written = new ArrayList<>();
        written.add(counted(jsc, maps));
        for (int step = 0; step < steps.length; step++) {
            if (hasService) {
                registered(jsc);
            }
            Check.equal("before", expected, digests(written.get(step)));
            File replaced = new File(scratch, "replaced-" + step);
            CompletableFuture<Void> operator = CompletableFuture.completedFuture(null);
            if (at == 0) {
                String start = "shuffles-" + step + "-";
                File host = new File(scratch, steps[step][0]);
                String faults = steps[step][1];
                operator = CompletableFuture.runAsync(() -> replace(host, faults, replaced,
                    () -> scratch.list((dir, name) -> name.startsWith(start)).length == applications));
            }
            File begun = new File(scratch, "shuffles-" + step + "-" + at);
            JavaPairRDD<Integer, Long> pairs = counted(RddCases.pairs(jsc, 8), maps);
            // Some applications have handed half of their outputs over by then, others read them.
            boolean inMap = at % 2 == 0;
            JavaPairRDD<Integer, Long> mapped = inMap ? upgraded(pairs, 4, begun, replaced) : pairs;
            JavaPairRDD<Integer, Iterable<Long>> grouped = mapped.groupByKey(6);
            written.add(grouped);
            Check.equal("meanwhile", expected, digests(inMap ? grouped : upgraded(grouped, 1, begun, replaced)));
            operator.get();
        }
        // One with the jar of this release, and one with that of the next.
        if (hasService && at % 2 == 0) {
            registered(jsc);
            kill(jsc, 2);
        }
        for (JavaPairRDD<Integer, Iterable<Long>> one : written) {
            Check.equal("in the end", expected, digests(one));
        }
        Check.equal("map tasks in all", 8L * written.size(), maps.value());
    }

    /** Its task of that partition says that it has begun, and waits until the service was replaced. */
    private static <V> JavaPairRDD<Integer, V> upgraded(
            JavaPairRDD<Integer, V> pairs, int partition, File begun, File replaced) {
        return pairs.mapPartitionsToPair(records -> {
            if (TaskContext.getPartitionId() == partition) {
                begun.createNewFile();
                Check.awaitFile(replaced);
            }
            return records;
        });
    }

    /** Replaces the service of a host when all applications are in the middle of a stage. */
    private static void replace(File host, String faults, File replaced, Callable<Boolean> allShuffle) {
        try {
            Check.await("all applications should be in a stage", allShuffle);
            String before = daemon(host.getPath());
            Files.write(new File(host, "replacement").toPath(), faults.getBytes("UTF-8"));
            Executors.signal(before, "TERM");
            File socket = new File(host, "service/faro-serve.sock");
            Check.await("another daemon should serve " + host.getName(),
                () -> !new File("/proc/" + before).exists() && socket.exists());
            Check.that("the daemon is another one", !before.equals(daemon(host.getPath())));
            Check.that("a signal", replaced.createNewFile());
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    /** The directory of the service of each executor. */
    private static Map<String, String> services(JavaSparkContext jsc) {
        List<Integer> tasks = new ArrayList<>(Collections.nCopies(16, 0));
        return new TreeMap<>(jsc.parallelize(tasks, tasks.size()).mapToPair(i -> new Tuple2<>(
            SparkEnv.get().executorId(), new File("/proc/self/cwd/service").getCanonicalPath()))
            .reduceByKey((a, b) -> a).collectAsMap());
    }

    private static JavaPairRDD<Integer, Iterable<Long>> counted(JavaSparkContext jsc, LongAccumulator maps) {
        return counted(RddCases.pairs(jsc, 8), maps).groupByKey(6);
    }

    static JavaPairRDD<Integer, Long> counted(JavaPairRDD<Integer, Long> pairs, LongAccumulator maps) {
        return pairs.mapPartitionsToPair(records -> {
            maps.add(1);
            return records;
        });
    }

    /** Returns the process id of the `faro serve` whose directories are in {@code scratch}. */
    static String daemon(String scratch) throws Exception {
        for (File process : new File("/proc").listFiles((dir, name) -> name.matches("\\d+"))) {
            try {
                String words = new String(Files.readAllBytes(new File(process, "cmdline").toPath()), "UTF-8");
                boolean isFaro = words.split("\0")[0].endsWith("/faro");
                if (isFaro && words.contains("\0serve\0") && words.contains(scratch + "/kept")) {
                    return process.getName();
                }
            } catch (java.io.IOException e) {
                // It has ended.
                continue;
            }
        }
        throw new AssertionError("no faro serve has its directories in " + scratch);
    }

    static void registered(JavaSparkContext jsc) throws Exception {
        Check.await("both executors should have the service",
            () -> FaroCounters.total(jsc, "serviceRegistered") == 2);
    }

    /**
     * The same for rows of Spark SQL, which Faro's writer writes and its reader reads: from files that the service
     * lends, and from nowhere else.
     */
    private static void rowsOutlive(SparkSession spark, JavaSparkContext jsc) throws Exception {
        LongAccumulator maps = jsc.sc().longAccumulator("rows mapped");
        JavaRDD<Row> rows = spark.range(0, 100_000, 1, 8).toDF().javaRDD().map(row -> {
            maps.add(1);
            return row;
        });
        JavaRDD<Row> shuffled = spark.createDataFrame(rows, spark.range(1).toDF().schema())
            .selectExpr("id", "concat('v', id) v").repartition(6).javaRDD();
        long before = sum(shuffled);
        Check.equal("rows mapped", 100_000L, maps.value());
        kill(jsc, 2);
        registered(jsc);
        List<String> others = Arrays.asList("serviceBlocks", "executorBlocks", "fallbackBlocks", "failedBlocks");
        List<Long> network = totals(jsc, others);
        long lent = FaroCounters.total(jsc, "serviceLocalBlocks");
        Check.equal("sum", before, sum(shuffled));
        Check.equal("rows mapped in all", 100_000L, maps.value());
        Check.equal(others + " from the network", network, totals(jsc, others));
        Check.equal("blocks from lent files", lent + 48, FaroCounters.total(jsc, "serviceLocalBlocks"));
    }

    static List<Long> totals(JavaSparkContext jsc, List<String> counters) {
        return counters.stream().map(name -> FaroCounters.total(jsc, name)).collect(Collectors.toList());
    }

    static long sum(JavaRDD<Row> rows) {
        return rows.map(row -> row.getLong(0) * 31 + row.getString(1).hashCode()).reduce(Long::sum);
    }

    static void removeShuffles(JavaSparkContext jsc) {
        for (int shuffle = 0; shuffle < 100; shuffle++) {
            jsc.sc().env().blockManager().master().removeShuffle(shuffle, true);
        }
    }

    /** When shuffles are removed, the service keeps nothing of them. */
    private static void nothingKept(JavaSparkContext jsc, File applications) throws Exception {
        JavaPairRDD<Integer, Iterable<Long>> groups = RddCases.pairs(jsc, 8).groupByKey(6);
        groups.count();
        Check.that("outputs are kept", links(applications, "") > 0);
        Check.inUse(groups);
        removeShuffles(jsc);
        Check.awaitReturn("no output should be kept", () -> links(applications, "") == 0);
    }

    /** All executors are given back, then shuffles are removed: the driver tells the service. */
    private static void emptyHost(JavaSparkContext jsc, File applications) throws Exception {
        JavaPairRDD<Integer, Iterable<Long>> groups = RddCases.pairs(jsc, 8).groupByKey(6);
        groups.count();
        Check.that("outputs are kept", links(applications, "") > 0);
        Check.inUse(groups);
        for (String executor : Executors.pids(jsc, 2).keySet()) {
            jsc.sc().killExecutor(executor);
        }
        Check.await("no executor should be left", () -> Executors.registered(jsc) == 0);
        Check.awaitReturn("no output should be kept", () -> {
            for (int shuffle = 0; shuffle < 100; shuffle++) {
                jsc.sc().shuffleDriverComponents().removeShuffle(shuffle, true);
            }
            return links(applications, "") == 0;
        });
        jsc.sc().requestExecutors(2);
        Executors.pids(jsc, 2);
    }

    private static int links(File applications, String start) {
        int found = 0;
        for (File application : applications.listFiles()) {
            String[] names = application.list((dir, name) -> name.endsWith(".index") && name.startsWith(start));
            found += names == null ? 0 : names.length;
        }
        return found;
    }

    /** Kills executors, deletes their directories, and waits until as many are there again. */
    private static void kill(JavaSparkContext jsc, int victims) throws Exception {
        Map<String, String> pids = Executors.pids(jsc, 2);
        kill(jsc, pids, directories(jsc), new ArrayList<>(pids.keySet()).subList(0, victims));
    }

    private static void kill(JavaSparkContext jsc, Map<String, String> pids, Map<String, List<String>> directories,
            List<String> chosen) throws Exception {
        for (String executor : chosen) {
            Executors.signal(pids.get(executor), "KILL");
        }
        for (String executor : chosen) {
            for (String directory : directories.get(executor)) {
                delete(new File(directory));
            }
        }
        Check.await("the killed executors should be gone", () -> {
            Map<String, String> now = Executors.pids(jsc, 2);
            return Collections.disjoint(now.keySet(), chosen);
        });
    }

    private static Map<String, List<String>> directories(JavaSparkContext jsc) {
        List<Integer> tasks = new ArrayList<>(Collections.nCopies(16, 0));
        return new TreeMap<>(jsc.parallelize(tasks, tasks.size()).mapToPair(i -> new Tuple2<>(
            SparkEnv.get().executorId(),
            Arrays.stream(SparkEnv.get().blockManager().diskBlockManager().localDirs())
                .map(File::getPath).collect(Collectors.toList()))).reduceByKey((a, b) -> a).collectAsMap());
    }

    private static void delete(File directory) throws Exception {
        try (Stream<Path> all = Files.walk(directory.toPath())) {
            for (Path path : (Iterable<Path>) all.sorted(Collections.reverseOrder())::iterator) {
                Files.deleteIfExists(path);
            }
        }
    }

    static Map<Integer, List<Long>> digests(JavaPairRDD<Integer, Iterable<Long>> grouped) {
        return new HashMap<>(grouped.mapValues(RddCases::digest).collectAsMap());
    }
}
