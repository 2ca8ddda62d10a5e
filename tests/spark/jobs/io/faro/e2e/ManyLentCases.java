package io.faro.e2e;

import static io.faro.e2e.LentCases.byKryo;
import static io.faro.e2e.LentCases.open;
import static io.faro.e2e.LentCases.openFiles;
import static io.faro.e2e.NodeServiceCases.counted;
import static io.faro.e2e.NodeServiceCases.digests;
import static io.faro.e2e.NodeServiceCases.registered;
import static io.faro.e2e.NodeServiceCases.removeShuffles;
import static io.faro.e2e.NodeServiceCases.sum;
import static io.faro.e2e.NodeServiceCases.totals;

import java.io.File;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.util.CollectionAccumulator;
import org.apache.spark.util.LongAccumulator;
import scala.Tuple2;

/** Thousands of map outputs that the node service lends to executors with few open files (the scenario's limit). */
final class ManyLentCases {
    /** Tasks that read at a time: as many as there are cores. */
    private static final int READERS = 16;
    /** More tasks than an executor has cores, and less than both have. */
    private static final int SOME_READERS = 9;
    /** So many records that the parts of so many tasks are larger than what is read ahead of a file. */
    private static final int MANY_RECORDS = 400_000;

    private ManyLentCases() {}

    static void register(Map<String, Jobs.Case> cases) {
        cases.put("manyLentRows", c -> manyLentRows(c.spark, c.jsc, c.scratch));
        cases.put("manyLentRecords", c -> manyLentRecords(c.jsc, c.scratch));
        cases.put("lentFileLostHalfRead", c -> lentFileLostHalfRead(c.jsc, c.scratch));
    }

    /**
     * Thousands of map outputs, of which an executor may have few open at a time (the scenario's limit of open files),
     * read by all its tasks together: from lent files only. Then the same once more, while the service's links go.
     */
    private static void manyLentRows(SparkSession spark, JavaSparkContext jsc, File scratch) throws Exception {
        registered(jsc);
        LongAccumulator maps = jsc.sc().longAccumulator("rows mapped");
        JavaRDD<Row> mapped = spark.range(0, 60_000, 1, 3_000).toDF().javaRDD().map(row -> {
            maps.add(1);
            return row;
        });
        JavaRDD<Row> shuffled = spark.createDataFrame(mapped, spark.range(1).toDF().schema())
            .selectExpr("id", "concat('v', id) v").repartition(READERS).javaRDD();
        long expected = sum(spark.range(0, 60_000, 1, 8).selectExpr("id", "concat('v', id) v").javaRDD());
        List<String> others = Arrays.asList("serviceBlocks", "executorBlocks", "fallbackBlocks", "failedBlocks");
        List<Long> network = totals(jsc, others);
        long lent = FaroCounters.total(jsc, "serviceLocalBlocks");
        Map<String, String> pids = Executors.pids(jsc, 2);
        CompletableFuture<Long> answer = CompletableFuture.supplyAsync(() -> sum(shuffled));
        int most = mostLent(pids, scratch, answer);
        Check.equal("sum", expected, answer.get());
        Check.equal(others + " from the network", network, totals(jsc, others));
        Check.that("files were lent, " + most + " at a time", most > 0 && most <= lentAtMost(jsc));
        Check.that("blocks were read from them", FaroCounters.total(jsc, "serviceLocalBlocks") - lent > 10_000);
        JavaRDD<Row> waiting = waiting(shuffled, scratch, "rows");
        Check.equal("sum without links", expected,
            withoutLinks(scratch, "rows", READERS, () -> { }, () -> sum(waiting)));
        Check.equal("rows mapped", 60_000L, maps.value());
        Check.that("blocks came from executors", FaroCounters.total(jsc, "executorBlocks") > network.get(1));
        allGivenBack(jsc, pids, scratch);
    }

    /** The same for records, whose parts are read in groups; without links. */
    private static void manyLentRecords(JavaSparkContext jsc, File scratch) throws Exception {
        registered(jsc);
        LongAccumulator maps = jsc.sc().longAccumulator("map tasks");
        JavaRDD<Tuple2<Integer, Long>> shuffled = byKryo(jsc, counted(RddCases.pairs(jsc, 500), maps), READERS);
        long executors = FaroCounters.total(jsc, "executorBlocks");
        Map<String, String> pids = Executors.pids(jsc, 2);
        shuffled.count();
        JavaRDD<Tuple2<Integer, Long>> waiting = waiting(shuffled, scratch, "records");
        Map<Integer, List<Long>> answer = withoutLinks(scratch, "records", READERS, () -> { },
            () -> digests(JavaPairRDD.fromJavaRDD(waiting).groupByKey(6)));
        Check.equal("records", RddCases.expected(), answer);
        Check.equal("map tasks", 500L, maps.value());
        Check.that("blocks came from executors", FaroCounters.total(jsc, "executorBlocks") > executors);
        allGivenBack(jsc, pids, scratch);
    }

    /**
     * A lent file is lost in the middle of a part: its tasks wait after a record, until others have borrowed so much
     * that it was closed, and it is lent no more. The rest of the part comes over the network, and no map task runs
     * again.
     */
    private static void lentFileLostHalfRead(JavaSparkContext jsc, File scratch) throws Exception {
        registered(jsc);
        CollectionAccumulator<String> mapped = jsc.sc().collectionAccumulator("executors of map tasks");
        JavaPairRDD<Integer, Long> pairs = RddCases.indices(jsc, MANY_RECORDS, 1)
            .mapToPair(i -> new Tuple2<>(RddCases.keyOf(i), RddCases.valueOf(i)))
            .mapPartitionsToPair(records -> {
                mapped.add(SparkEnv.get().executorId());
                return records;
            });
        JavaRDD<Tuple2<String, List<Long>>> read = waiting(byKryo(jsc, pairs, SOME_READERS), scratch, "large")
            .mapPartitions(records -> {
                List<Long> values = new ArrayList<>();
                records.forEachRemaining(one -> values.add(one._2()));
                return Collections.singletonList(
                    new Tuple2<>(SparkEnv.get().executorId(), RddCases.digest(values))).iterator();
            });
        List<String> network = Arrays.asList("serviceBlocks", "executorBlocks", "fallbackBlocks", "failedBlocks");
        List<Long> before = new ArrayList<>();
        Map<String, String> pids = Executors.pids(jsc, 2);
        String kept = new File(scratch, "kept/applications").getCanonicalPath();
        List<Tuple2<String, List<Long>>> answer = withoutLinks(scratch, "large", SOME_READERS, () -> {
            List<String> halfRead = openFiles(pids, kept);
            Check.that("lent files are being read", !halfRead.isEmpty());
            byKryo(jsc, RddCases.pairs(jsc, 600), 4).count();
            Check.awaitReturn("the files that are being read should be closed",
                () -> Collections.disjoint(halfRead, openFiles(pids, kept)));
            before.addAll(totals(jsc, network));
        }, read::collect);
        Check.equal("map tasks", 1, mapped.value().size());
        long halfRead = answer.stream().filter(one -> !one._1().equals(mapped.value().get(0))).count();
        Check.that("another executor has read", halfRead > 0);
        Check.equal(network + " since the files are lost",
            Arrays.asList(before.get(0), before.get(1) + halfRead, before.get(2), before.get(3)),
            totals(jsc, network));
        List<Long> expected = new ArrayList<>();
        for (int i = 0; i < MANY_RECORDS; i++) {
            expected.add(RddCases.valueOf(i));
        }
        List<Long> together = answer.stream().map(Tuple2::_2).reduce(Arrays.asList(0L, 0L, 0L),
            (a, b) -> Arrays.asList(a.get(0) + b.get(0), a.get(1) + b.get(1), a.get(2) ^ b.get(2)));
        Check.equal("records", RddCases.digest(expected), together);
        allGivenBack(jsc, pids, scratch);
    }

    /** Lent files that an executor may have: an eighth of what it may have open, and those of one message. */
    private static int lentAtMost(JavaSparkContext jsc) {
        int limit = jsc.parallelize(Collections.singletonList(0), 1).map(i -> {
            for (String line : Files.readAllLines(new File("/proc/self/limits").toPath())) {
                if (line.startsWith("Max open files")) {
                    return Integer.parseInt(line.trim().split("\\s+")[3]);
                }
            }
            throw new AssertionError("no limit of open files");
        }).first();
        Check.that("few files, the limit is " + limit, limit < 3_000);
        return limit / 8 + 252;
    }

    /** The most lent files that an executor had open before the answer was there. */
    private static int mostLent(Map<String, String> pids, File scratch, CompletableFuture<?> answer) throws Exception {
        String kept = new File(scratch, "kept/applications").getCanonicalPath();
        int[] most = {0};
        Check.await("an answer", () -> {
            for (Map.Entry<String, String> one : pids.entrySet()) {
                most[0] = Math.max(most[0], open(Collections.singletonMap(one.getKey(), one.getValue()), kept));
            }
            return answer.isDone();
        });
        return most[0];
    }

    /** The same rows or records; each task waits after its first one until {@link #withoutLinks} lets it go on. */
    private static <T> JavaRDD<T> waiting(JavaRDD<T> all, File scratch, String name) {
        File signals = new File(scratch, name + "-signals");
        Check.that("a directory", signals.mkdirs());
        return all.mapPartitions(records -> {
            List<T> read = new ArrayList<>();
            if (records.hasNext()) {
                read.add(records.next());
            }
            Files.createFile(new File(signals, "begun-" + TaskContext.getPartitionId()).toPath());
            Check.awaitFile(new File(signals, "go"));
            records.forEachRemaining(read::add);
            return read.iterator();
        });
    }

    private interface Step {
        void run() throws Exception;
    }

    /**
     * Removes the links of the service when {@code readers} tasks have planned to read lent files and have begun, and
     * {@code before} was done.
     */
    private static <T> T withoutLinks(File scratch, String name, int readers, Step before, Supplier<T> job)
            throws Exception {
        File signals = new File(scratch, name + "-signals");
        CompletableFuture<T> answer = CompletableFuture.supplyAsync(job);
        Check.await("all tasks should have begun to read",
            () -> answer.isDone() || signals.list((dir, file) -> file.startsWith("begun-")).length == readers);
        before.run();
        for (File application : new File(scratch, "kept/applications").listFiles()) {
            File[] links = application.listFiles((dir, file) -> file.matches(".*\\.(index|data)"));
            for (File link : links == null ? new File[0] : links) {
                Check.that("a link goes", link.delete());
            }
        }
        Check.that("a signal", new File(signals, "go").createNewFile());
        return answer.get();
    }

    private static void allGivenBack(JavaSparkContext jsc, Map<String, String> pids, File scratch) throws Exception {
        String kept = new File(scratch, "kept/applications").getCanonicalPath();
        removeShuffles(jsc);
        Check.awaitReturn("no executor should hold lent files", () -> open(pids, kept) == 0);
        Executors.awaitReturnedLeases(jsc);
    }
}
