package io.faro.e2e;

import static io.faro.e2e.NodeServiceCases.counted;
import static io.faro.e2e.NodeServiceCases.daemon;
import static io.faro.e2e.NodeServiceCases.registered;
import static io.faro.e2e.NodeServiceCases.removeShuffles;
import static io.faro.e2e.NodeServiceCases.sum;

import java.io.File;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
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
    private LentCases() {}

    static void register(Map<String, Jobs.Case> cases) {
        cases.put("lentWhileServiceDies", c -> lentWhileServiceDies(c.jsc, c.scratch));
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
            Check.awaitFile(killed);
            Map<Integer, List<Long>> values = new HashMap<>();
            values.computeIfAbsent(first._1(), key -> new ArrayList<>()).add(first._2());
            records.forEachRemaining(one -> values.computeIfAbsent(one._1(), key -> new ArrayList<>()).add(one._2()));
            return values.entrySet().stream()
                .map(one -> new Tuple2<>(one.getKey(), RddCases.digest(one.getValue()))).iterator();
        });
        CompletableFuture<Map<Integer, List<Long>>> answer =
            CompletableFuture.supplyAsync(() -> new HashMap<>(read.collectAsMap()));
        Check.await("both executors should have begun to read",
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
    static JavaRDD<Tuple2<Integer, Long>> byKryo(
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
        JavaRDD<Row> rows = spark.range(0, 10_000, 1, 8).selectExpr("id", "concat('v', id) v").repartition(6).javaRDD();
        sum(rows);
        Map<String, String> pids = Executors.pids(jsc, 2);
        String kept = new File(scratch, "kept/applications").getCanonicalPath();
        Check.that("executors hold lent files", open(pids, kept) > 0);
        Check.inUse(rows);
        removeShuffles(jsc);
        Check.awaitReturn("no executor should hold files of removed shuffles", () -> open(pids, kept) == 0);
    }

    /** The number of {@link #openFiles}. */
    static int open(Map<String, String> pids, String directory) {
        return openFiles(pids, directory).size();
    }

    /** The open files of these processes that are or were below a directory; one for each descriptor. */
    static List<String> openFiles(Map<String, String> pids, String directory) {
        List<String> found = new ArrayList<>();
        for (String pid : pids.values()) {
            for (File descriptor : new File("/proc/" + pid + "/fd").listFiles()) {
                try {
                    String path = Files.readSymbolicLink(descriptor.toPath()).toString();
                    if (path.startsWith(directory)) {
                        found.add(path);
                    }
                } catch (java.io.IOException e) {
                    // It was closed.
                    continue;
                }
            }
        }
        return found;
    }
}
