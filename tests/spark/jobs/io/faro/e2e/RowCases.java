package io.faro.e2e;

import java.io.File;
import java.io.RandomAccessFile;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Predicate;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.executor.ShuffleReadMetrics;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/** Rows of Spark SQL on their way through a shuffle: their types, their sizes, their bytes. */
final class RowCases {
    private static final int MAPS = 16;
    private static final int REDUCES = 12;

    private RowCases() {}

    static void register(Map<String, Jobs.Case> cases) {
        cases.put("rowTypes", c -> types(c.spark));
        cases.put("rowSizes", c -> sizes(c.spark));
        cases.put("rowMetrics", c -> metrics(c.spark));
        cases.put("manyPartitions", c -> manyPartitions(c.spark));
        cases.put("mostPartitions", c -> mostPartitions(c.spark));
        cases.put("corruptFiles", c -> corruptFiles(c.spark));
        cases.put("stopsEarly", c -> stopsEarly(c.spark));
        cases.put("rowsCancelled", c -> cancelled(c));
        cases.put("rowsKilled", c -> killed(c));
    }

    /** Rows whose every column is a function of {@code id}; shuffled, each must still be that. */
    private static void types(SparkSession spark) {
        String name = "concat('n', id)";
        String struct = "named_struct('a', id, 'b', " + name + ", 'c', array(id, null, -id))";
        String[] columns = {
            "id", "cast(id % 2 = 0 as boolean)", "cast(id % 100 as byte)", "cast(id as short)", "cast(id as int)",
            "cast(id as float) / 3", "cast(id as double) / 7", "cast(id as decimal(10,2))",
            "cast(id as decimal(38,10))", name, "cast(" + name + " as binary)", "date_add(date'2020-01-01', cast(id as int))",
            "timestamp_seconds(id)", "if(id % 3 = 0, null, " + name + ")", "array(id, null, id + 1)",
            "array(" + name + ", null)", "map(" + name + ", id, 'k', null)", struct,
            "array(" + struct + ", null)", "map(id, " + struct + ")", "repeat(" + name + ", cast(id % 300 as int))",
            "make_interval(0, cast(id % 12 as int), 0, 1)", "cast(null as string)",
        };
        List<String> selected = new ArrayList<>();
        List<String> made = new ArrayList<>();
        List<String> read = new ArrayList<>();
        for (int i = 0; i < columns.length; i++) {
            selected.add(columns[i] + " as c" + i);
            made.add("to_json(named_struct('v', " + columns[i] + "))");
            read.add("to_json(named_struct('v', c" + i + "))");
        }
        spark.range(0, 4000, 1, MAPS).createOrReplaceTempView("ids");
        spark.sql("select " + String.join(", ", selected) + " from ids").repartition(REDUCES)
            .createOrReplaceTempView("typed");
        Row expected = spark.sql("select count(*), sum(cast(xxhash64(" + String.join(", ", made)
            + ") as decimal(38))) from ids")
            .collectAsList().get(0);
        Row actual = spark.sql("select count(*), sum(cast(xxhash64(" + String.join(", ", read)
            + ") as decimal(38))) from typed")
            .collectAsList().get(0);
        Check.equal("rows and their digest", expected, actual);
    }

    /** From 8 bytes (no column but the key) to 64 MB. */
    private static void sizes(SparkSession spark) {
        long[][] shapes = {{20_000, 0}, {5_000, 1_000}, {300, 70_000}, {40, 1 << 20}, {2, 64 << 20}};
        for (long[] shape : shapes) {
            String text = shape[1] == 0 ? "cast(null as string)"
                : "repeat(char(65 + cast(id % 26 as int)), cast(" + shape[1] + " + id % 7 as int))";
            Row row = spark.range(0, shape[0], 1, 4).selectExpr("id", text + " as t").repartition(3)
                .selectExpr("count(*)", "sum(id)", "sum(length(t))",
                    "sum(if(t is null or t = repeat(char(65 + cast(id % 26 as int)), length(t)), 0, 1))")
                .collectAsList().get(0);
            Check.equal("rows of " + shape[1], shape[0], row.getLong(0));
            Check.equal("ids of " + shape[1], shape[0] * (shape[0] - 1) / 2, row.getLong(1));
            long length = 0;
            for (long id = 0; id < shape[0] && shape[1] > 0; id++) {
                length += shape[1] + id % 7;
            }
            Check.equal("length of " + shape[1], length, row.isNullAt(2) ? 0L : row.getLong(2));
            Check.equal("wrong texts of " + shape[1], 0L, row.getLong(3));
        }
    }

    /** Spark's own figures of a read, whatever reads: all rows, all blocks, all bytes. */
    private static void metrics(SparkSession spark) throws Exception {
        StageFigures figures;
        String adaptive = spark.conf().get("spark.sql.adaptive.enabled");
        spark.conf().set("spark.sql.adaptive.enabled", "false");
        try {
            figures = StageFigures.of(spark.sparkContext(),
                () -> spark.range(0, 50_000, 1, MAPS).selectExpr("id", "hash(id) h").repartition(REDUCES)
                    .toJavaRDD().foreach(row -> { }));
        } finally {
            spark.conf().set("spark.sql.adaptive.enabled", adaptive);
        }
        ShuffleReadMetrics read = figures.reads.get(1);
        Check.equal("rows", 50_000L, read.recordsRead());
        Check.equal("blocks", (long) MAPS * REDUCES, read.totalBlocksFetched());
        Check.equal("bytes", figures.written.get(0), read.totalBytesRead());
        Check.that("local and remote blocks: " + read.localBlocksFetched() + ", " + read.remoteBlocksFetched(),
            read.localBlocksFetched() > 0 && read.remoteBlocksFetched() > 0);
    }

    /** Two rows to a block, or none. */
    private static void manyPartitions(SparkSession spark) {
        for (int partitions : new int[] {1, 2_500}) {
            Row row = spark.range(0, 40_000, 1, 8).selectExpr("id", "id * 2 d").repartition(partitions)
                .selectExpr("count(*)", "sum(id)", "sum(d)").collectAsList().get(0);
            Check.equal("rows of " + partitions, 40_000L, row.getLong(0));
            Check.equal("ids of " + partitions, 40_000L * 39_999 / 2, row.getLong(1));
            Check.equal("values of " + partitions, 40_000L * 39_999, row.getLong(2));
        }
    }

    /** A few tasks read 20,000 partitions, whose blocks come one by one or as ranges. */
    private static void mostPartitions(SparkSession spark) {
        for (String ranges : new String[] {"true", "false"}) {
            spark.conf().set("spark.sql.shuffle.partitions", "20000");
            spark.conf().set("spark.sql.adaptive.fetchShuffleBlocksInBatch", ranges);
            try {
                Row row = spark.range(0, 60_000, 1, 6).selectExpr("id % 30000 k", "id").groupBy("k").count()
                    .selectExpr("count(*)", "sum(k)", "sum(count)").collectAsList().get(0);
                Check.equal("groups, ranges: " + ranges, 30_000L, row.getLong(0));
                Check.equal("keys, ranges: " + ranges, 30_000L * 29_999 / 2, row.getLong(1));
                Check.equal("rows, ranges: " + ranges, 60_000L, row.getLong(2));
            } finally {
                spark.conf().set("spark.sql.shuffle.partitions", "12");
                spark.conf().unset("spark.sql.adaptive.fetchShuffleBlocksInBatch");
            }
        }
    }

    /** Flips a byte in some files between two reads: Spark computes those map outputs again. */
    private static void corruptFiles(SparkSession spark) throws Exception {
        Map<String, Long> before = dataFiles(spark);
        // With adaptive execution this runs the map stage.
        JavaRDD<Row> rows = spark.range(0, 60_000, 1, MAPS).selectExpr("id", "repeat(cast(id as string), 9) t")
            .repartition(REDUCES).toJavaRDD();
        long expected = digest(rows);
        List<File> files = new ArrayList<>();
        for (String path : dataFiles(spark).keySet()) {
            if (!before.containsKey(path)) {
                files.add(new File(path));
            }
        }
        Check.that("there should be " + MAPS + " files: " + files, files.size() >= MAPS);
        for (int i = 0; i < 3; i++) {
            File file = files.get(i * 5);
            try (RandomAccessFile data = new RandomAccessFile(file, "rw")) {
                long at = data.length() / 2 + i;
                data.seek(at);
                int was = data.read();
                data.seek(at);
                data.write(was ^ 0x55);
            }
        }
        Check.equal("digest after the damage", expected, digest(rows));
        Check.equal("digest once more", expected, digest(rows));
    }

    private static long digest(JavaRDD<Row> rows) {
        return rows.map(row -> Check.mix(row.getLong(0)) ^ row.getString(1).hashCode()).reduce(Long::sum);
    }

    /** Data files of map outputs below the local directory, with their sizes. */
    static Map<String, Long> dataFiles(SparkSession spark) {
        return files(spark, name -> name.startsWith("shuffle_") && name.endsWith(".data"));
    }

    /** The file of this name below the local directory. */
    static File find(SparkSession spark, String name) {
        Map<String, Long> found = files(spark, name::equals);
        Check.equal("files named " + name, 1, found.size());
        return new File(found.keySet().iterator().next());
    }

    /** Files with such names below the local directory, with their sizes, by path. */
    private static Map<String, Long> files(SparkSession spark, Predicate<String> wanted) {
        Map<String, Long> found = new TreeMap<>();
        LocalFiles.walk(new File(spark.sparkContext().conf().get("spark.local.dir")), file -> {
            if (wanted.test(file.getName())) {
                found.put(file.getPath(), file.length());
            }
        });
        return found;
    }

    /** Tasks that take a few rows of many: nothing may stay behind. */
    private static void stopsEarly(SparkSession spark) {
        for (int i = 0; i < 20; i++) {
            Dataset<Row> rows = spark.range(0, 40_000, 1, 8).selectExpr("id", "repeat('x', 200) t").repartition(6);
            long some = rows.toJavaRDD().mapPartitions(part -> {
                List<Long> first = new ArrayList<>();
                for (int n = 0; n < 3 && part.hasNext(); n++) {
                    first.add(part.next().getLong(0));
                }
                return first.iterator();
            }).count();
            Check.equal("rows", 18L, some);
        }
    }

    /** A hundred tasks are ended while they read; then a job is not cancelled, and nothing is left of the others. */
    private static void cancelled(Jobs.Context c) throws Exception {
        SparkSession spark = c.spark;
        JavaRDD<Row> rows = spark.range(0, 400_000, 1, 8).selectExpr("id", "repeat(cast(id as string), 20) t")
            .repartition(8).toJavaRDD();
        long expected = digest(rows);
        Executors.Use before = Executors.use(c.jsc);
        int ended = CancelledJobs.endTasks("rows", c.jsc, "ResultTask", 100, i -> digest(rows));
        Check.equal("digest", expected, digest(rows));
        Executors.awaitReturnedLeases(c.jsc);
        Executors.Use after = Executors.use(c.jsc);
        // Threads and descriptors of Spark's own come and go.
        Check.that("descriptors: " + before + ", after " + ended + " ended tasks " + after,
            after.descriptors <= before.descriptors + 20);
        Check.that("threads: " + before + ", after " + ended + " ended tasks " + after,
            after.threads <= before.threads + 20);
    }

    /** An executor dies between two reads: Spark computes what is gone with it again. */
    private static void killed(Jobs.Context c) throws Exception {
        JavaRDD<Row> rows = c.spark.range(0, 100_000, 1, MAPS).selectExpr("id", "cast(id as string) t")
            .repartition(REDUCES).toJavaRDD();
        long expected = digest(rows);
        String victim = Executors.pids(c.jsc, 2).values().iterator().next();
        Executors.signal(victim, "KILL");
        Check.equal("digest after an executor's death", expected, digest(rows));
        Check.equal("digest once more", expected, digest(rows));
    }
}
