package io.faro.e2e;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import javax.management.ObjectName;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/** How long rows and the readers of a task live: as long as something may look at them, and no longer. */
public final class RowLifeCases {
    /** Tasks of one round of {@link #endsEarly}. */
    private static final int TASKS = 40;
    /** Readers of a task that has many, one after the other. */
    private static final int READERS = 1_500;
    /** What a reader holds while it reads. */
    private static final String[] PARTS_OF_A_READER = {
        "io.faro.spark.read.RowShuffleReader", "io.faro.spark.read.GroupedReader", "io.faro.spark.read.ReadPlan",
        "io.faro.spark.read.GroupFetch", "io.faro.rows.RowReader", "io.faro.spark.fetch.TaskFetches$BlockHashes",
        "org.apache.spark.storage.ShuffleBlockFetcherIterator",
    };

    private RowLifeCases() {}

    static void register(Map<String, Jobs.Case> cases) {
        cases.put("transformEndsEarly", c -> {
            words(c.spark).createOrReplaceTempView("words");
            int rounds = Integer.parseInt(c.spark.conf().get("spark.e2e.rounds", "3"));
            endsEarly(c.jsc, c.spark.sql("select transform(id, t) using 'cat' as (id, t) from words"), rounds);
            checkFeedsEnded(c.jsc, TASKS * rounds);
        });
        cases.put("coalescedReaders", c -> coalescedReaders(c.spark));
        cases.put("longRowsReturned", c -> longRowsReturned(c));
    }

    /** Shuffled rows whose text is a function of their id. */
    public static Dataset<Row> words(SparkSession spark) {
        return spark.range(0, 120_000, 1, 4).selectExpr("id", "concat('w', id, repeat('x', cast(id % 90 as int))) t")
            .repartition(TASKS);
    }

    /**
     * Reads three rows of each partition of {@code fed}, whose tasks feed an external program on a thread of its own, so
     * that the threads still walk rows when their tasks have ended; meanwhile other tasks of the same executors read.
     * Ends so many rounds of 40 tasks.
     */
    public static void endsEarly(JavaSparkContext jsc, Dataset<Row> fed, int rounds) throws Exception {
        SparkSession spark = fed.sparkSession();
        Dataset<Row> others = words(spark).selectExpr("count(*)",
            "sum(if(t = concat('w', id, repeat('x', cast(id % 90 as int))), 0, 1))");
        ExecutorService other = Executors.newSingleThreadExecutor();
        try {
            Future<Long> ended = other.submit(() -> {
                long rows = 0;
                for (int i = 0; i < rounds; i++) {
                    rows += fed.toJavaRDD().mapPartitions(part -> {
                        List<Row> first = new ArrayList<>();
                        for (int n = 0; n < 3 && part.hasNext(); n++) {
                            first.add(part.next());
                        }
                        return first.iterator();
                    }).count();
                }
                return rows;
            });
            do {
                Row row = others.collectAsList().get(0);
                Check.equal("rows", 120_000L, row.getLong(0));
                Check.equal("wrong rows", 0L, row.getLong(1));
            } while (!ended.isDone());
            Check.equal("rows of ended tasks", 3L * TASKS * rounds, ended.get());
        } finally {
            other.shutdownNow();
        }
    }

    /**
     * A feed fails when its task has ended, and Spark then ends the program. One that had given all its rows before
     * waits for the program for ever, in stock Spark too: about an eighth of them. All of them did when rows of an ended
     * task ended without an error: 2,000 threads and programs, and then executors without memory.
     */
    private static void checkFeedsEnded(JavaSparkContext jsc, int tasks) {
        Map<String, Long> waiting = jsc.parallelize(java.util.Collections.nCopies(8, 0), 8).mapToPair(n -> {
            long feeds = Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().contains("ScriptTransformationWriterThread")).count();
            return new scala.Tuple2<>(org.apache.spark.SparkEnv.get().executorId(), feeds);
        }).reduceByKey(Math::max).collectAsMap();
        long feeds = waiting.values().stream().mapToLong(Long::longValue).sum();
        Check.that(feeds + " of " + tasks + " feeds wait for programs that are not read", feeds < tasks / 2);
    }

    /** One task has all readers of a shuffle, one after the other: those that have ended are gone. */
    private static void coalescedReaders(SparkSession spark) {
        String adaptive = spark.conf().get("spark.sql.adaptive.enabled");
        spark.conf().set("spark.sql.adaptive.enabled", "false");
        try {
            long rows = spark.range(0, 6_000, 1, 4).selectExpr("id", "hash(id) h").repartition(READERS).toJavaRDD()
                .coalesce(1).mapPartitions(part -> {
                    long count = 0;
                    while (part.hasNext()) {
                        part.next();
                        count++;
                    }
                    checkGone();
                    return java.util.Collections.singletonList(count).iterator();
                }).collect().get(0);
            Check.equal("rows", 6_000L, rows);
        } finally {
            spark.conf().set("spark.sql.adaptive.enabled", adaptive);
        }
    }

    /** In the task that had the readers, before it ends. Counts what can be reached, after a collection. */
    private static void checkGone() throws Exception {
        String histogram = (String) ManagementFactory.getPlatformMBeanServer().invoke(
            new ObjectName("com.sun.management:type=DiagnosticCommand"), "gcClassHistogram",
            new Object[] {new String[0]}, new String[] {String[].class.getName()});
        for (String line : histogram.split("\n")) {
            String[] words = line.trim().split("\\s+");
            for (String part : PARTS_OF_A_READER) {
                if (words.length > 3 && words[3].equals(part)) {
                    Check.that(words[1] + " of " + part + " are left of " + READERS + " readers",
                        Long.parseLong(words[1]) < 20);
                }
            }
        }
    }

    /** Rows of 32 MB come in pieces: no native memory of their size, and none at all when their tasks have ended. */
    private static void longRowsReturned(Jobs.Context c) {
        Row row = c.spark.range(0, 8, 1, 4).selectExpr("id", "repeat('l', 32000000) t").repartition(2)
            .selectExpr("count(*)", "sum(length(t))").collectAsList().get(0);
        Check.equal("rows", 8L, row.getLong(0));
        Check.equal("bytes", 8L * 32_000_000, row.getLong(1));
        Check.equal("bytes of decoders, no reader being open", 0L,
            FaroCounters.total(c.jsc, "memory.rowDecoderBytes"));
        long max = FaroCounters.total(c.jsc, "memory.tasksHighWaterBytes");
        Check.that("highest bytes of decoders and compressors: " + max, max > 0 && max < 16 << 20);
    }
}
