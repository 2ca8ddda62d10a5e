package io.faro.e2e;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.zip.Adler32;
import java.util.zip.CRC32;
import java.util.zip.Checksum;
import org.apache.spark.FetchFailed;
import org.apache.spark.MapOutputStatistics;
import org.apache.spark.Partitioner;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.ShuffleStatus;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.rdd.RDD;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import scala.Option;
import scala.Product2;

/** What the map tasks of Spark SQL write: files, figures, statistics. */
final class WriterCases {
    private static final int MAPS = 4;
    private static final int REDUCES = 12;
    /** Of a block of lz4-java's format. */
    private static final int HEADER_BYTES = 21;
    static final String ADAPTIVE = "spark.sql.adaptive.enabled";

    private WriterCases() {}

    static void register(Map<String, Jobs.Case> cases) {
        cases.put("writerFiles", c -> files(c));
        cases.put("writerMetrics", c -> metrics(c));
        cases.put("rowChecksums", c -> rowChecksums(c));
        cases.put("corruptDiagnosed", c -> corruptDiagnosed(c));
    }

    /** Runs with a setting of the session's. */
    static void with(SparkSession spark, String key, String value, Jobs.Case body, Jobs.Context c) throws Exception {
        String before = spark.conf().get(key);
        spark.conf().set(key, value);
        try {
            body.run(c);
        } finally {
            spark.conf().set(key, before);
        }
    }

    /** Rows of an id and a text that is a function of it, by hash of the id: without a sort before the writer. */
    private static Dataset<Row> rows(SparkSession spark, long rows, int maps, int reduces) {
        return spark.range(0, rows, 1, maps).selectExpr("id", "repeat(cast(id as string), cast(id % 50 as int)) t")
            .repartition(reduces, new Column("id"));
    }

    /** Bytes of these rows as Spark has them: null bits, a number, and a text by offset and length. */
    private static long bytesOfRows(long rows) {
        long bytes = 0;
        for (long id = 0; id < rows; id++) {
            long text = String.valueOf(id).length() * (id % 50);
            bytes += 8 + 8 + 8 + (text + 7) / 8 * 8;
        }
        return bytes;
    }

    /** The data file of each map output by map id. */
    private static Map<Long, File> dataFiles(Jobs.Context c, int shuffleId) throws Exception {
        Map<Long, File> found = new TreeMap<>();
        String prefix = "shuffle_" + shuffleId + "_";
        for (Map.Entry<String, File> file : LocalFiles.all(c.jsc).entrySet()) {
            if (file.getKey().startsWith(prefix) && file.getKey().endsWith(".data")) {
                found.put(Long.parseLong(file.getKey().split("_")[2]), file.getValue());
            }
        }
        return found;
    }

    /** Index, checksums and map statuses of map outputs agree with the data files. */
    private static void files(Jobs.Context c) throws Exception {
        // Rows, maps, partitions: some of each; partitions without rows; many partitions; maps without rows.
        long[][] shapes = {{200_000, MAPS, REDUCES}, {500, 2, 700}, {60_000, 3, 2_500}, {3, 8, 5}};
        for (long[] shape : shapes) {
            with(c.spark, ADAPTIVE, "false", context -> {
                Dataset<Row> query = rows(c.spark, shape[0], (int) shape[1], (int) shape[2]);
                ShuffleDependency<?, ?, ?> dependency =
                    Plans.dependency(Plans.node(query, "ShuffleExchangeExec"));
                // Without the tasks that would read it.
                c.jsc.sc().submitMapStage(dependency).get();
                checkFiles(c, Arrays.toString(shape), dependency, (int) shape[2]);
            }, c);
        }
    }

    private static void checkFiles(Jobs.Context c, String shape, ShuffleDependency<?, ?, ?> dependency, int partitions)
            throws Exception {
        SparkConf conf = c.jsc.getConf();
        String algorithm = conf.getBoolean("spark.shuffle.checksum.enabled", true)
            ? conf.get("spark.shuffle.checksum.algorithm", "ADLER32").toUpperCase(Locale.ROOT) : null;
        Map<String, File> all = LocalFiles.all(c.jsc);
        long written = 0;
        for (MapStatus status : statuses(dependency.shuffleId())) {
            String name = "shuffle_" + dependency.shuffleId() + "_" + status.mapId() + "_0";
            String of = shape + ", " + name;
            long[] index = LocalFiles.numbers(all.get(name + ".index"));
            File data = all.get(name + ".data");
            Check.equal("offsets of " + of, partitions + 1, index.length);
            Check.equal("first offset of " + of, 0L, index[0]);
            Check.equal("last offset of " + of, data == null ? 0L : data.length(), index[partitions]);
            byte[] bytes = data == null ? new byte[0] : Files.readAllBytes(data.toPath());
            written += bytes.length;
            File checksums = all.get(name + ".checksum." + algorithm);
            Check.equal("checksums of " + of + " are there", algorithm != null && data != null, checksums != null);
            long[] sums = checksums == null ? null : LocalFiles.numbers(checksums);
            for (int i = 0; i < partitions; i++) {
                int length = (int) (index[i + 1] - index[i]);
                if (sums != null) {
                    Checksum sum = checksum(algorithm);
                    sum.update(bytes, (int) index[i], length);
                    Check.equal("checksum " + i + " of " + of, sum.getValue(), sums[i]);
                }
                // A status has the logarithms of the sizes; of many partitions, an average.
                long size = status.getSizeForBlock(i);
                Check.equal("block " + i + " of " + of + " is empty", length == 0, size == 0);
                Check.that("block " + i + " of " + of + " has " + length + " bytes, the status " + size,
                    partitions > 2_000
                        || size >= length && size <= maxWithoutRowBlocks(bytes, (int) index[i], length) * 1.11 + 1);
            }
        }
        Check.that("nothing was written: " + shape, written > 0);
    }

    /**
     * What a partition takes at most without row blocks: its bytes, or where it has row blocks, of which Spark is told
     * the bytes that lz4 alone would have made, the original bytes of its blocks with their headers.
     */
    private static long maxWithoutRowBlocks(byte[] file, int start, int length) {
        byte[] magic = "LZ4Block".getBytes(StandardCharsets.US_ASCII);
        ByteBuffer bytes = ByteBuffer.wrap(file, start, length).slice().order(ByteOrder.LITTLE_ENDIAN);
        long max = 0;
        boolean hasRows = false;
        while (bytes.remaining() >= HEADER_BYTES) {
            int at = bytes.position();
            for (int i = 0; i < magic.length; i++) {
                if (bytes.get(at + i) != magic[i]) {
                    return length;
                }
            }
            hasRows |= (bytes.get(at + 8) & 0xf0) == 0x30;
            max += HEADER_BYTES + bytes.getInt(at + 13);
            bytes.position(at + HEADER_BYTES + bytes.getInt(at + 9));
        }
        return hasRows ? max : length;
    }

    private static Checksum checksum(String algorithm) throws Exception {
        switch (algorithm) {
            case "ADLER32":
                return new Adler32();
            case "CRC32":
                return new CRC32();
            default:
                // Not in Java 8, which this is compiled for.
                return (Checksum) Class.forName("java.util.zip." + algorithm).getConstructor().newInstance();
        }
    }

    private static MapStatus[] statuses(int shuffleId) throws Exception {
        Object byShuffle = Plans.call(SparkEnv.get().mapOutputTracker(), "shuffleStatuses");
        return ((ShuffleStatus) Plans.apply(byShuffle, Object.class, shuffleId)).mapStatuses();
    }

    /** Spark's figures of a write, and what adaptive execution takes its statistics from. */
    private static void metrics(Jobs.Context c) throws Exception {
        long rows = 100_000;
        long rowBytes = bytesOfRows(rows);
        with(c.spark, ADAPTIVE, "false", context -> {
            Dataset<Row> query = rows(c.spark, rows, MAPS, REDUCES);
            RDD<?> shuffled = Plans.rows(query);
            TaskMetrics maps = StageFigures.of(c.jsc.sc(), shuffled::count).stages.get(0);
            Object exchange = Plans.node(query, "ShuffleExchangeExec");
            long files = 0;
            for (File file : dataFiles(c, Plans.dependency(exchange).shuffleId()).values()) {
                files += file.length();
            }
            Check.equal("records written", rows, maps.shuffleWriteMetrics().recordsWritten());
            Check.equal("bytes written", files, maps.shuffleWriteMetrics().bytesWritten());
            Check.that("write time", maps.shuffleWriteMetrics().writeTime() > 0);
            Check.that("peak memory", maps.peakExecutionMemory() > 0);
            Check.equal("memory spilled", 0L, maps.memoryBytesSpilled());
            Check.equal("disk spilled", 0L, maps.diskBytesSpilled());
            Check.equal("dataSize", rowBytes, Plans.metric(exchange, "dataSize"));
            Check.equal("shuffleBytesWritten", files, Plans.metric(exchange, "shuffleBytesWritten"));
            Check.equal("shuffleRecordsWritten", rows, Plans.metric(exchange, "shuffleRecordsWritten"));
        }, c);
        with(c.spark, ADAPTIVE, "true", context -> {
            Dataset<Row> query = rows(c.spark, rows, MAPS, REDUCES);
            Check.equal("rows", rows, Plans.rows(query).count());
            Object stage = Plans.node(query, "ShuffleQueryStageExec");
            Object statistics = Plans.call(stage, "getRuntimeStatistics");
            Check.equal("size", String.valueOf(rowBytes), Plans.call(statistics, "sizeInBytes").toString());
            Check.equal("rows", "Some(" + rows + ")", Plans.call(statistics, "rowCount").toString());
            MapOutputStatistics outputs = (MapOutputStatistics) ((Option<?>) Plans.call(stage, "mapStats")).get();
            long files = 0;
            long max = 0;
            for (File file : dataFiles(c, outputs.shuffleId()).values()) {
                byte[] bytes = Files.readAllBytes(file.toPath());
                files += bytes.length;
                max += maxWithoutRowBlocks(bytes, 0, bytes.length);
            }
            long known = Arrays.stream(outputs.bytesByPartitionId()).sum();
            Check.that("files have " + files + " bytes, statistics " + known,
                known >= files && known <= max * 1.11);
        }, c);
    }

    /** The order-independent checksums of each map output: those that Spark's own classes compute of the same rows. */
    private static void rowChecksums(Jobs.Context c) throws Exception {
        if (Arrays.stream(MapStatus.class.getMethods()).noneMatch(m -> m.getName().equals("checksumValue"))) {
            // Before Spark 4.1.
            return;
        }
        Check.equal("the setting", "true",
            c.spark.conf().get("spark.sql.shuffle.orderIndependentChecksum.enabled"));
        with(c.spark, ADAPTIVE, "false", context -> {
            List<Dataset<Row>> queries = Arrays.asList(rows(c.spark, 50_000, MAPS, REDUCES),
                // Round-robin, of rows that are sorted for it.
                c.spark.range(0, 50_000, 1, MAPS).selectExpr("id", "if(id % 7 = 0, null, hash(id)) h")
                    .repartition(REDUCES));
            for (Dataset<Row> query : queries) {
                Plans.rows(query).count();
                ShuffleDependency<?, ?, ?> dependency = Plans.dependency(Plans.node(query, "ShuffleExchangeExec"));
                @SuppressWarnings("unchecked")
                RDD<Object> records = (RDD<Object>) (RDD<?>) dependency.rdd();
                Object[] empty = (Object[]) Plans.call(dependency, "rowBasedChecksums");
                Check.equal("checksums of a dependency", REDUCES, empty.length);
                List<Long> expected = records.toJavaRDD()
                    .mapPartitions(new SumOfRows(empty, dependency.partitioner())).collect();
                List<Long> actual = new ArrayList<>();
                for (MapStatus status : statuses(dependency.shuffleId())) {
                    actual.add((Long) Plans.call(status, "checksumValue"));
                }
                Check.equal("checksums", expected, actual);
                Check.that("of different rows: " + actual, new TreeSet<>(actual).size() == MAPS);
            }
        }, c);
    }

    /** Computes what Spark's writers do of the rows of a map task. */
    private static final class SumOfRows implements FlatMapFunction<Iterator<Object>, Long> {
        private final Object[] empty;
        private final Partitioner partitioner;

        SumOfRows(Object[] empty, Partitioner partitioner) {
            this.empty = empty;
            this.partitioner = partitioner;
        }

        @Override
        public Iterator<Long> call(Iterator<Object> records) throws Exception {
            Class<?> type = empty.getClass().getComponentType();
            java.lang.reflect.Method update = type.getMethod("update", Object.class, Object.class);
            while (records.hasNext()) {
                Product2<?, ?> record = (Product2<?, ?>) records.next();
                update.invoke(empty[partitioner.getPartition(record._1())], record._1(), record._2());
            }
            java.lang.reflect.Method total = type.getMethod("getAggregatedChecksumValue", empty.getClass());
            return Arrays.asList((Long) total.invoke(null, (Object) empty)).iterator();
        }
    }

    /** Flips a byte of a block: Spark computes the map output again, and says that the disk's bytes changed. */
    private static void corruptDiagnosed(Jobs.Context c) throws Exception {
        List<String> messages = new ArrayList<>();
        SparkListener listener = new SparkListener() {
            @Override
            public void onTaskEnd(SparkListenerTaskEnd end) {
                if (end.reason() instanceof FetchFailed) {
                    synchronized (messages) {
                        messages.add(((FetchFailed) end.reason()).message());
                    }
                }
            }
        };
        // Blocks that are read as a range have no diagnosis.
        with(c.spark, ADAPTIVE, "false", context -> {
            Dataset<Row> query = rows(c.spark, 60_000, MAPS, REDUCES);
            JavaRDD<Long> digests =
                query.toJavaRDD().map(row -> Check.mix(row.getLong(0)) ^ row.getString(1).hashCode());
            TreeSet<String> before = new TreeSet<>(LocalFiles.all(c.jsc).keySet());
            long expected = digests.reduce(Long::sum);
            Map<String, File> files = LocalFiles.all(c.jsc);
            files.keySet().removeIf(name -> before.contains(name) || !name.endsWith(".data"));
            Check.equal("files", MAPS, files.size());
            damage(files.values().iterator().next());
            c.jsc.sc().addSparkListener(listener);
            try {
                // An owner may still have the block's old bytes in memory; it looks now and then whether a file changed.
                Check.await("a fetch should fail", () -> {
                    Check.equal("digest after the damage", expected, digests.reduce(Long::sum));
                    synchronized (messages) {
                        return !messages.isEmpty();
                    }
                });
            } finally {
                c.jsc.sc().removeSparkListener(listener);
            }
            synchronized (messages) {
                Check.that("diagnosis: " + messages, messages.stream().anyMatch(m -> m.matches("(?s).*Block shuffle_\\d+_\\d+_\\d+ is corrupted due to DISK_ISSUE.*")));
            }
        }, c);
    }

    private static void damage(File file) throws IOException {
        try (RandomAccessFile data = new RandomAccessFile(file, "rw")) {
            long at = data.length() / 2;
            data.seek(at);
            int was = data.read();
            data.seek(at);
            data.write(was ^ 0x55);
        }
    }
}
