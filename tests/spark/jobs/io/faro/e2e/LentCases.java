package io.faro.e2e;

import static io.faro.e2e.NodeServiceCases.counted;
import static io.faro.e2e.NodeServiceCases.daemon;
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
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import org.apache.spark.HashPartitioner;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.rdd.ShuffledRDD;
import org.apache.spark.serializer.KryoSerializer;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.util.LongAccumulator;
import scala.Tuple2;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/** Files of map outputs that the node service lends to the executors of its host. */
final class LentCases {
    /** Tasks that read at a time: as many as there are cores. */
    private static final int READERS = 16;

    private LentCases() {}

    static void register(Map<String, Jobs.Case> cases) {
        cases.put("lentWhileServiceDies", c -> lentWhileServiceDies(c.jsc, c.scratch));
        cases.put("manyLentRows", c -> manyLentRows(c.spark, c.jsc, c.scratch));
        cases.put("manyLentRecords", c -> manyLentRecords(c.jsc, c.scratch));
        cases.put("lentFilesClosed", c -> lentFilesClosed(c.spark, c.jsc, c.scratch));
    }

    /**
     * Tasks that have begun to read lent files go on when the service is killed; so does one that begins meanwhile.
     * Their parts are larger than what is read of many at once.
     */
    private static void lentWhileServiceDies(JavaSparkContext jsc, File scratch) throws Exception {
        File signals = new File(scratch, "signals");
        Check.that("a directory", signals.mkdirs());
        File killed = new File(signals, "killed");
        LongAccumulator maps = jsc.sc().longAccumulator("map tasks");
        JavaRDD<Tuple2<Integer, Long>> shuffled = byKryo(jsc, counted(RddCases.pairs(jsc, 8), maps), 3);
        long before = FaroCounters.total(jsc, "serviceLocalBytes");
        JavaPairRDD<Integer, List<Long>> read = shuffled.mapPartitionsToPair(records -> {
            Tuple2<Integer, Long> first = records.next();
            Files.createFile(new File(signals, "begun-" + TaskContext.getPartitionId()).toPath());
            Check.awaitFile(killed, 60);
            Map<Integer, List<Long>> values = new HashMap<>();
            values.computeIfAbsent(first._1(), key -> new ArrayList<>()).add(first._2());
            records.forEachRemaining(one -> values.computeIfAbsent(one._1(), key -> new ArrayList<>()).add(one._2()));
            return values.entrySet().stream()
                .map(one -> new Tuple2<>(one.getKey(), RddCases.digest(one.getValue()))).iterator();
        });
        CompletableFuture<Map<Integer, List<Long>>> answer =
            CompletableFuture.supplyAsync(() -> new HashMap<>(read.collectAsMap()));
        Check.await("both executors should have begun to read", 60,
            () -> answer.isDone() || signals.list((dir, name) -> name.startsWith("begun-")).length >= 2);
        Executors.signal(daemon(scratch.toString()), "KILL");
        Check.that("a signal", killed.createNewFile());
        Check.equal("read", RddCases.expected(), answer.get());
        Check.equal("map tasks", 8L, maps.value());
        Check.that("large parts came from lent files",
            FaroCounters.total(jsc, "serviceLocalBytes") - before > 8 * (64 << 10));
        registered(jsc);
    }

    /** Through a shuffle whose records Faro deserialises in groups of parts: Kryo's can be joined. */
    @SuppressWarnings("unchecked")
    private static JavaRDD<Tuple2<Integer, Long>> byKryo(
            JavaSparkContext jsc, JavaPairRDD<Integer, Long> pairs, int partitions) {
        ClassTag<Object> tag = ClassTag$.MODULE$.Object();
        ShuffledRDD<Object, Object, Object> shuffled = new ShuffledRDD<>(
            (RDD<Tuple2<Object, Object>>) (RDD<?>) pairs.rdd(), new HashPartitioner(partitions), tag, tag, tag);
        RDD<?> rdd = shuffled.setSerializer(new KryoSerializer(jsc.getConf()));
        return ((RDD<Tuple2<Integer, Long>>) rdd).toJavaRDD();
    }

    /** Lent files of a removed shuffle are closed, so that they keep no disk space. */
    private static void lentFilesClosed(SparkSession spark, JavaSparkContext jsc, File scratch) throws Exception {
        registered(jsc);
        sum(spark.range(0, 10_000, 1, 8).selectExpr("id", "concat('v', id) v").repartition(6).javaRDD());
        Map<String, String> pids = Executors.pids(jsc, 2);
        String kept = new File(scratch, "kept/applications").getCanonicalPath();
        Check.that("executors hold lent files", open(pids, kept) > 0);
        removeShuffles(jsc);
        Check.await("no executor should hold files of removed shuffles", 30, () -> open(pids, kept) == 0);
    }

    /** The open files of these processes that are or were below a directory. */
    private static int open(Map<String, String> pids, String directory) {
        int found = 0;
        for (String pid : pids.values()) {
            for (File descriptor : new File("/proc/" + pid + "/fd").listFiles()) {
                try {
                    found += Files.readSymbolicLink(descriptor.toPath()).toString().startsWith(directory) ? 1 : 0;
                } catch (java.io.IOException e) {
                    // It was closed.
                    continue;
                }
            }
        }
        return found;
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
        Check.equal("sum without links", expected, withoutLinks(scratch, "rows", () -> sum(waiting)));
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
        Map<Integer, List<Long>> answer = withoutLinks(scratch, "records",
            () -> digests(JavaPairRDD.fromJavaRDD(waiting).groupByKey(6)));
        Check.equal("records", RddCases.expected(), answer);
        Check.equal("map tasks", 500L, maps.value());
        Check.that("blocks came from executors", FaroCounters.total(jsc, "executorBlocks") > executors);
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
        Check.await("an answer", 120, () -> {
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
            Check.awaitFile(new File(signals, "go"), 60);
            records.forEachRemaining(read::add);
            return read.iterator();
        });
    }

    /** Removes the links of the service when all tasks have planned to read lent files and have begun. */
    private static <T> T withoutLinks(File scratch, String name, Supplier<T> job) throws Exception {
        File signals = new File(scratch, name + "-signals");
        CompletableFuture<T> answer = CompletableFuture.supplyAsync(job);
        Check.await("all tasks should have begun to read", 60,
            () -> answer.isDone() || signals.list((dir, file) -> file.startsWith("begun-")).length == READERS);
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
        Check.await("no executor should hold lent files", 30, () -> open(pids, kept) == 0);
        Executors.awaitReturnedLeases(jsc);
    }
}
