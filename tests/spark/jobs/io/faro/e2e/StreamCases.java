package io.faro.e2e;

import java.io.File;
import java.io.RandomAccessFile;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.spark.Aggregator;
import org.apache.spark.FetchFailed;
import org.apache.spark.HashPartitioner;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.executor.ShuffleReadMetrics;
import org.apache.spark.rdd.ShuffledRDD;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import scala.Function1;
import scala.Function2;
import scala.Tuple2;
import scala.math.Ordering;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * RDDs of many small blocks, with a serializer whose objects may be moved: their blocks are read as one stream for each
 * group. The scenarios set Kryo.
 */
final class StreamCases {
    private static final int MANY = 201;
    private static final int SOME = 30;
    private static final int RECORDS = 30_000;

    private StreamCases() {}

    static void register(Map<String, Jobs.Case> cases) {
        cases.put("streams", c -> streams(c.jsc));
        cases.put("streamsSorted", c -> sorted(c.jsc));
        cases.put("streamsMetrics", c -> metrics(c.jsc));
        cases.put("streamsCorrupt", c -> corrupt(c));
        cases.put("streamsStopEarly", c -> stopsEarly(c.jsc));
    }

    private static JavaPairRDD<Integer, Long> pairs(JavaSparkContext jsc, int records, int maps) {
        return RddCases.indices(jsc, records, maps).mapToPair(i -> new Tuple2<>(i, RddCases.valueOf(i)));
    }

    /** From each of {@code tasks} map tasks, records for each of as many reduce tasks: (reduce task, value). */
    private static JavaPairRDD<Integer, Long> spread(JavaSparkContext jsc, int records, int tasks) {
        // Index i is made by task i % tasks.
        return pairs(jsc, records, tasks).mapToPair(kv -> new Tuple2<>(kv._1() / tasks % tasks, kv._2()))
            .partitionBy(new HashPartitioner(tasks));
    }

    /** Each of 201 map tasks has a block of two records for each of 201 reduce tasks. */
    private static void streams(JavaSparkContext jsc) {
        List<List<Long>> actual = spread(jsc, 2 * MANY * MANY, MANY)
            .mapPartitionsWithIndex((p, records) -> {
                List<Long> values = new ArrayList<>();
                while (records.hasNext()) {
                    Tuple2<Integer, Long> record = records.next();
                    Check.equal("key", p, record._1());
                    values.add(record._2());
                }
                return Arrays.asList(RddCases.digest(values)).iterator();
            }, true).collect();
        List<List<Long>> values = new ArrayList<>();
        for (int p = 0; p < MANY; p++) {
            values.add(new ArrayList<>());
        }
        for (int i = 0; i < 2 * MANY * MANY; i++) {
            values.get(i / MANY % MANY).add(RddCases.valueOf(i));
        }
        for (int p = 0; p < MANY; p++) {
            Check.equal("partition " + p, RddCases.digest(values.get(p)), actual.get(p));
        }
    }

    /** With what else a reader does: combining, of combined values or not, sorting, both. */
    private static void sorted(JavaSparkContext jsc) {
        JavaPairRDD<Integer, Long> pairs = pairs(jsc, RECORDS, SOME)
            .mapToPair(kv -> new Tuple2<>(RddCases.keyOf(kv._1()), kv._2()));
        Map<Integer, List<Long>> values = new HashMap<>();
        for (int i = 0; i < RECORDS; i++) {
            values.computeIfAbsent(RddCases.keyOf(i), k -> new ArrayList<>()).add(RddCases.valueOf(i));
        }
        Map<Integer, List<Long>> digests = new HashMap<>();
        Map<Integer, Long> sums = new HashMap<>();
        values.forEach((key, of) -> {
            digests.put(key, RddCases.digest(of));
            sums.put(key, digests.get(key).get(1));
        });
        Check.equal("groups", digests,
            new HashMap<>(pairs.groupByKey(SOME).mapValues(RddCases::digest).collectAsMap()));
        Check.equal("sums", sums, new HashMap<>(pairs.reduceByKey(Long::sum, SOME).collectAsMap()));
        List<Integer> keys = pairs.sortByKey(true, SOME).keys().collect();
        Check.equal("sorted records", RECORDS, keys.size());
        for (int i = 1; i < keys.size(); i++) {
            Check.that("keys should be in order at " + i, keys.get(i - 1) <= keys.get(i));
        }
        for (boolean mapSide : new boolean[] {true, false}) {
            List<Tuple2<Integer, Long>> both = combinedInOrder(pairs, mapSide);
            Check.equal("sums in order, combined by maps: " + mapSide, sums.size(), both.size());
            int last = -1;
            for (Tuple2<Integer, Long> sum : both) {
                // One partition has them all.
                Check.that("keys should rise: " + last + ", " + sum._1(), last < sum._1());
                last = sum._1();
                Check.equal("sum of " + last, sums.get(last), sum._2());
            }
        }
    }

    /** The RDD API has no operation that combines and sorts in one shuffle. */
    private static List<Tuple2<Integer, Long>> combinedInOrder(JavaPairRDD<Integer, Long> pairs, boolean mapSide) {
        Function1<Long, Long> create = (Function1<Long, Long> & Serializable) value -> value;
        Function2<Long, Long, Long> add = (Function2<Long, Long, Long> & Serializable) Long::sum;
        ClassTag<Integer> ints = ClassTag$.MODULE$.apply(Integer.class);
        ClassTag<Long> longs = ClassTag$.MODULE$.apply(Long.class);
        ShuffledRDD<Integer, Long, Long> shuffled =
            new ShuffledRDD<Integer, Long, Long>(pairs.rdd(), new HashPartitioner(1), ints, longs, longs)
                .setAggregator(new Aggregator<Integer, Long, Long>(create, add, add))
                .setMapSideCombine(mapSide)
                .setKeyOrdering(Ordering.comparatorToOrdering(new ByNumber()));
        return JavaPairRDD.fromRDD(shuffled, ints, longs).collect();
    }

    private static final class ByNumber implements java.util.Comparator<Integer>, Serializable {
        @Override
        public int compare(Integer one, Integer other) {
            return Integer.compare(one, other);
        }
    }

    /** Spark's own figures of a read, whatever reads: all records, all blocks, all bytes. */
    private static void metrics(JavaSparkContext jsc) throws Exception {
        StageFigures figures = StageFigures.of(jsc.sc(),
            () -> spread(jsc, RECORDS, SOME).foreach(record -> { }));
        ShuffleReadMetrics read = figures.reads.get(1);
        Check.equal("records", (long) RECORDS, read.recordsRead());
        Check.equal("blocks", (long) SOME * SOME, read.totalBlocksFetched());
        Check.equal("bytes", figures.written.get(0), read.totalBytesRead());
        Check.that("local and remote blocks: " + read.localBlocksFetched() + ", " + read.remoteBlocksFetched(),
            read.localBlocksFetched() > 0 && read.remoteBlocksFetched() > 0);
        Check.that("local and remote bytes: " + read.localBytesRead() + ", " + read.remoteBytesRead(),
            read.localBytesRead() > 0 && read.remoteBytesRead() > 0);
    }

    /** Flips a byte of one block in some files between two reads: exactly these blocks are named as corrupt. */
    private static void corrupt(Jobs.Context c) throws Exception {
        TreeSet<String> named = new TreeSet<>();
        SparkListener listener = new SparkListener() {
            @Override
            public void onTaskEnd(SparkListenerTaskEnd end) {
                if (end.reason() instanceof FetchFailed) {
                    FetchFailed failed = (FetchFailed) end.reason();
                    synchronized (named) {
                        named.add(failed.mapId() + " " + failed.reduceId()
                            + (failed.message().contains(" is corrupted due to DISK_ISSUE") ? "" : ": " + failed.message()));
                    }
                }
            }
        };
        Map<String, Long> before = RowCases.dataFiles(c.spark);
        JavaRDD<Long> values = spread(c.jsc, RECORDS, SOME).values();
        long expected = values.reduce(Long::sum);
        List<File> files = new ArrayList<>();
        RowCases.dataFiles(c.spark).keySet().stream().filter(path -> !before.containsKey(path))
            .forEach(path -> files.add(new File(path)));
        Check.equal("files", SOME, files.size());
        TreeSet<String> damaged = new TreeSet<>();
        for (int i = 0; i < 3; i++) {
            File file = files.get(5 + 9 * i);
            File index = RowCases.find(c.spark, file.getName().replace(".data", ".index"));
            damaged.add(damage(file, index, 11 + 9 * i));
        }
        c.jsc.sc().addSparkListener(listener);
        try {
            // Of a stage's tasks that run when the first fails, others may have failed too, or not yet. And an owner may
            // have a block's old bytes in memory; it looks now and then whether a file changed.
            Check.await("a corrupt block should be named", () -> {
                Check.equal("sum after the damage", expected, values.reduce(Long::sum));
                synchronized (named) {
                    return !named.isEmpty();
                }
            });
        } finally {
            c.jsc.sc().removeSparkListener(listener);
        }
        synchronized (named) {
            Check.that("named: " + named + ", damaged: " + damaged, damaged.containsAll(named));
        }
    }

    /** Damages the body of a map output's block; its map id and partition. */
    private static String damage(File data, File index, int partition) throws Exception {
        String map = data.getName().split("_")[2];
        long end;
        try (RandomAccessFile offsets = new RandomAccessFile(index, "r")) {
            offsets.seek(8L * (partition + 1));
            end = offsets.readLong();
        }
        try (RandomAccessFile bytes = new RandomAccessFile(data, "rw")) {
            // Before the end mark of lz4's stream, which is 21 bytes.
            bytes.seek(end - 30);
            int was = bytes.read();
            bytes.seek(end - 30);
            bytes.write(was ^ 0x55);
        }
        return map + " " + partition;
    }

    /** Tasks that take a few records of many: nothing may stay behind. */
    private static void stopsEarly(JavaSparkContext jsc) throws Exception {
        JavaPairRDD<Integer, Long> shuffled = spread(jsc, RECORDS, SOME);
        for (int i = 0; i < 3; i++) {
            long some = shuffled.mapPartitions(part -> {
                List<Long> first = new ArrayList<>();
                for (int n = 0; n < 3 && part.hasNext(); n++) {
                    first.add(part.next()._2());
                }
                return first.iterator();
            }).count();
            Check.equal("records", 3L * SOME, some);
        }
        Executors.awaitReturnedLeases(jsc);
    }
}
