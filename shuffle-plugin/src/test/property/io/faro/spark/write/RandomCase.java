package io.faro.spark.write;

import io.faro.spark.write.Neighbour.OnSpill;
import io.faro.spark.write.RandomRows.Rows;
import io.faro.spark.write.RandomRows.Sizes;
import java.util.Arrays;
import java.util.Random;
import java.util.TreeMap;
import org.apache.spark.SparkConf;
import org.apache.spark.util.TaskCompletionListener;

/** One random case: settings, rows, the memory of Faro's task, and what else takes memory there. */
final class RandomCase implements AutoCloseable {
  private static final long MIB = 1 << 20;
  /** Minimum memory of Faro's writer: its first buffers. */
  private static final long MIN_BYTES = MIB + (64 << 10);

  final SparkConf conf;
  final RandomRows rows;
  final long memoryBytes;
  /** A task has so many rows in memory at most; 0: any number. */
  final int maxRows;
  /** Spark would take its writer for few partitions. */
  final boolean few;
  private final TreeMap<String, String> settings = new TreeMap<>();
  private final boolean hasNeighbour;
  private final int every;
  private final OnSpill onSpill;
  private final long neighbourSeed;

  RandomCase(LocalSpark spark, long seed) {
    this(spark, seed, null);
  }

  /** {@code only}: a codec with lz4's settings; {@code null}: any. */
  RandomCase(LocalSpark spark, long seed, String only) {
    // Neighbouring seeds would have nearly the same first numbers.
    Random random = new Random(seed * 0x9E3779B97F4A7C15L);
    String codec = only == null ? one(random, "lz4", "zstd", "none") : only;
    if (codec.equals("lz4") || only != null) {
      settings.put("spark.io.compression.lz4.blockSize", one(random, "64b", "200b", "1k", "32k", "32k", "300k", "2m"));
    } else if (codec.equals("zstd")) {
      settings.put("spark.io.compression.zstd.level", one(random, "-3", "1", "1", "3", "7"));
    }
    String checksum = one(random, "none", "ADLER32", "CRC32");
    settings.put("spark.shuffle.checksum.enabled", Boolean.toString(!checksum.equals("none")));
    settings.put("spark.shuffle.checksum.algorithm", checksum.equals("none") ? "ADLER32" : checksum);
    settings.put("spark.memory.offHeap.enabled", one(random, "false", "false", "true"));
    int partitions = random.nextInt(5) == 0 ? 1 : 1 + (int) (3000 * Math.pow(random.nextDouble(), 5));
    // Buffers take four of Spark's pages at most; Faro leaves shuffles of more partitions than that to Spark's writer.
    settings.put("spark.buffer.pageSize", partitions > 500 ? "8m" : one(random, "1m", "2m", "8m"));
    rows = new RandomRows(random, partitions, Sizes.values()[random.nextInt(Sizes.values().length)]);
    maxRows = random.nextInt(3) == 0 ? 1 + rows.count / (1 + random.nextInt(10)) : 0;
    if (maxRows > 0) {
      settings.put("spark.shuffle.spill.numElementsForceSpillThreshold", Integer.toString(maxRows));
    }
    memoryBytes = random.nextBoolean() ? 64 * MIB : MIN_BYTES + random.nextInt((int) (8 * MIB));
    hasNeighbour = random.nextBoolean();
    every = 1 + random.nextInt(1 + rows.count / 4);
    onSpill = OnSpill.values()[random.nextInt(OnSpill.values().length)];
    neighbourSeed = random.nextLong();
    few = random.nextBoolean() && partitions <= 200;
    settings.put("spark.shuffle.sort.bypassMergeThreshold", few ? "200" : "0");
    conf = spark.conf(codec);
    settings.forEach(conf::set);
    settings.put("codec", codec);
  }

  private static String one(Random random, String... of) {
    return of[random.nextInt(of.length)];
  }

  /** The case's rows for Faro's task. */
  Rows rowsFor(MapTask task) {
    if (!hasNeighbour) {
      return rows.rows();
    }
    Neighbour neighbour = new Neighbour(task.memory, neighbourSeed, memoryBytes - MIN_BYTES, every, onSpill);
    task.context.addTaskCompletionListener((TaskCompletionListener) context -> neighbour.free());
    return neighbour.between(rows.rows());
  }

  /** Nothing makes the task spill. */
  boolean hasRoom() {
    return few || !hasNeighbour && maxRows == 0 && memoryBytes >= 64 * MIB;
  }

  @Override
  public void close() {
    rows.close();
  }

  @Override
  public String toString() {
    return rows + ", memory " + memoryBytes + (hasNeighbour ? ", a neighbour (" + onSpill + ") every " + every : "")
        + ", " + Arrays.toString(settings.entrySet().toArray());
  }
}
