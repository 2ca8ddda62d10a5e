package io.faro.e2e;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.FetchFailed;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import scala.Tuple2;

/** Map outputs with row blocks, whose format only Faro knows, on their way to every executor. */
final class RowBlockCases {
    private static final int MAPS = 12;
    private static final int REDUCES = 24;
    private static final long ROWS = 60_000;
    private static final byte[] MAGIC = "LZ4Block".getBytes(StandardCharsets.US_ASCII);
    private static final int HEADER_BYTES = 21;
    /** What the upper half of a row block's token is, with a tail of LZ4 and with one of zstd. */
    private static final int PACKED = 3;
    private static final int PACKED_ZSTD = 4;

    private RowBlockCases() {}

    static void register(Map<String, Jobs.Case> cases) {
        cases.put("rowBlocksEverywhere", c -> everywhere(c));
        cases.put("rowBlocksDamaged", c -> damaged(c));
        cases.put("rowBlocksNone", c -> none(c));
    }

    private static Dataset<Row> rows(SparkSession spark) {
        return spark.range(0, ROWS, 1, MAPS).selectExpr("id", "if(id % 7 = 0, null, id * id) d",
            "concat('text ', id % 100) t", "cast(id as decimal(38,4)) w").repartition(REDUCES);
    }

    private static long digest(Row row) {
        long id = row.getLong(0);
        boolean right = row.isNullAt(1) == (id % 7 == 0) && (id % 7 == 0 || row.getLong(1) == id * id)
            && row.getString(2).equals("text " + id % 100)
            && row.getDecimal(3).compareTo(new java.math.BigDecimal(id)) == 0;
        if (!right) {
            throw new AssertionError("a wrong row: " + row);
        }
        return Check.mix(id);
    }

    private static long expected() {
        long sum = 0;
        for (long id = 0; id < ROWS; id++) {
            sum += Check.mix(id);
        }
        return sum;
    }

    /** The data files that there were not before. */
    private static Map<String, File> newFiles(Jobs.Context c, Set<String> before) throws Exception {
        Map<String, File> files = LocalFiles.all(c.jsc);
        files.keySet().removeIf(name -> before.contains(name) || !name.endsWith(".data"));
        Check.equal("files", MAPS, files.size());
        return files;
    }

    private static Set<String> names(Jobs.Context c) throws Exception {
        return new TreeSet<>(LocalFiles.all(c.jsc).keySet());
    }

    /** Uses the RDD, for Spark deletes the files of a shuffle that nothing refers to. */
    private static void keepUntilNow(JavaRDD<?> rdd) {
        Check.that("the id of an RDD", rdd.id() >= 0);
    }

    private static int method(byte[] file, int at) {
        return (file[at + MAGIC.length] & 0xff) >> 4;
    }

    /**
     * The next block from a place in a data file; the length of the file: there is none. Blocks stand between frames
     * of zstd, or one behind the other.
     */
    private static int nextBlock(byte[] file, int from) {
        for (int at = from; at + HEADER_BYTES <= file.length; at++) {
            if (Arrays.equals(Arrays.copyOfRange(file, at, at + MAGIC.length), MAGIC)) {
                return at;
            }
        }
        return file.length;
    }

    private static int end(byte[] file, int at) {
        return at + HEADER_BYTES + ByteBuffer.wrap(file).order(ByteOrder.LITTLE_ENDIAN).getInt(at + 9);
    }

    /** Counts the blocks of each method in a data file. */
    private static void count(byte[] file, int[] found) {
        for (int at = nextBlock(file, 0); at < file.length; at = nextBlock(file, end(file, at))) {
            found[method(file, at)]++;
        }
    }

    /** Every executor reads rows of the shuffle, whatever it reads them with, and most blocks are row blocks. */
    private static void everywhere(Jobs.Context c) throws Exception {
        int executors = Executors.registered(c.jsc);
        WriterCases.with(c.spark, WriterCases.ADAPTIVE, "false", context -> {
            Set<String> readers = new HashSet<>();
            Check.await("all of " + executors + " executors should read rows", () -> {
                Set<String> before = names(c);
                JavaRDD<Row> rows = rows(c.spark).toJavaRDD();
                List<Tuple2<String, Long>> parts = rows.mapPartitions(part -> {
                    long sum = 0;
                    while (part.hasNext()) {
                        sum += digest(part.next());
                    }
                    List<Tuple2<String, Long>> one = new ArrayList<>();
                    one.add(new Tuple2<>(SparkEnv.get().executorId(), sum));
                    return one.iterator();
                }).collect();
                long sum = 0;
                for (Tuple2<String, Long> part : parts) {
                    readers.add(part._1());
                    sum += part._2();
                }
                Check.equal("digest", expected(), sum);
                int[] methods = new int[16];
                for (File file : newFiles(c, before).values()) {
                    count(Files.readAllBytes(file.toPath()), methods);
                }
                keepUntilNow(rows);
                // Where an executor has no native code, Spark writes; each part has a raw block at its end.
                String codec = c.jsc.getConf().get("spark.io.compression.codec", "lz4");
                int packed = methods[codec.equals("zstd") ? PACKED_ZSTD : PACKED];
                Check.that("row blocks: " + packed + ", of lz4 " + methods[2], packed > MAPS * REDUCES / 4);
                return readers.size() >= executors;
            });
        }, c);
    }

    /** Where row blocks cannot be read by all, there are none. */
    private static void none(Jobs.Context c) throws Exception {
        WriterCases.with(c.spark, WriterCases.ADAPTIVE, "false", context -> {
            Set<String> before = names(c);
            JavaRDD<Long> digests = rows(c.spark).toJavaRDD().map(RowBlockCases::digest);
            Check.equal("digest", expected(), digests.reduce(Long::sum));
            for (Map.Entry<String, File> file : newFiles(c, before).entrySet()) {
                String text = new String(Files.readAllBytes(file.getValue().toPath()), StandardCharsets.ISO_8859_1);
                // Neither lz4's blocks nor row blocks are expected.
                Check.that("a row block in " + file.getKey(), !text.contains("LZ4Block"));
            }
            keepUntilNow(digests);
        }, c);
    }

    /** A wrong bit in a row block: the task's failure names the map output, and the answer is computed again. */
    private static void damaged(Jobs.Context c) throws Exception {
        List<FetchFailed> failures = new ArrayList<>();
        SparkListener listener = new SparkListener() {
            @Override
            public void onTaskEnd(SparkListenerTaskEnd end) {
                if (end.reason() instanceof FetchFailed) {
                    synchronized (failures) {
                        failures.add((FetchFailed) end.reason());
                    }
                }
            }
        };
        // Blocks that are read as a range have no diagnosis.
        WriterCases.with(c.spark, WriterCases.ADAPTIVE, "false", context -> {
            Set<String> before = names(c);
            JavaRDD<Long> digests = rows(c.spark).toJavaRDD().map(RowBlockCases::digest);
            Check.equal("digest", expected(), digests.reduce(Long::sum));
            Map.Entry<String, File> file = newFiles(c, before).entrySet().iterator().next();
            damageFirstRowBlock(file.getValue());
            c.jsc.sc().addSparkListener(listener);
            try {
                Check.await("a fetch should fail", () -> {
                    Check.equal("digest after the damage", expected(), digests.reduce(Long::sum));
                    synchronized (failures) {
                        return !failures.isEmpty();
                    }
                });
            } finally {
                c.jsc.sc().removeSparkListener(listener);
            }
            String[] name = file.getKey().split("_");
            synchronized (failures) {
                Check.equal("the failed map output", Long.parseLong(name[2]), failures.get(0).mapId());
                Check.that("diagnosis: " + failures, failures.stream().anyMatch(
                    failure -> failure.message().matches("(?s).*is corrupted due to DISK_ISSUE.*")));
            }
        }, c);
    }

    private static void damageFirstRowBlock(File file) throws IOException {
        byte[] bytes = Files.readAllBytes(file.toPath());
        for (int at = nextBlock(bytes, 0); at < bytes.length; at = nextBlock(bytes, end(bytes, at))) {
            if (method(bytes, at) >= PACKED) {
                bytes[(at + HEADER_BYTES + end(bytes, at)) / 2] ^= 0x04;
                Files.write(file.toPath(), bytes);
                return;
            }
        }
        throw new AssertionError("no row block in " + file);
    }
}
