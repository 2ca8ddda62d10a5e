package io.faro.spark.write;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.spark.RowsCodec;
import io.faro.spark.ZstdRowsCodec;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import scala.Option;

/**
 * Faro's writer makes row blocks of random rows, with spills at any moment, and Spark's own classes read the same rows
 * through {@link RowsCodec} or {@link ZstdRowsCodec}. {@code -Dfaro.write.cases=N} asks for more cases, {@code
 * -Dfaro.write.seed=S} for the case with that seed alone, as in {@link SameAsSparkTest}.
 */
class PackedRowsTest {
  private static final int CASES = Integer.getInteger("faro.write.cases", 40);
  private static final Long SEED = Long.getLong("faro.write.seed");
  private static LocalSpark spark;

  @BeforeAll
  static void open() throws Exception {
    spark = new LocalSpark();
  }

  @AfterAll
  static void close() throws Exception {
    spark.close();
  }

  @Test
  void sparkReadsTheRowsThatWerePacked() throws Exception {
    sparkReads(RowsCodec.class, CASES);
  }

  @Test
  void sparkReadsThemWithTailsOfZstd() throws Exception {
    sparkReads(ZstdRowsCodec.class, (CASES + 1) / 2);
  }

  private static void sparkReads(Class<?> codec, int cases) throws Exception {
    long rowBlocks = 0;
    long packedBytes = 0;
    long plainBytes = 0;
    for (long seed = SEED == null ? 0 : SEED; seed < (SEED == null ? cases : SEED + 1); seed++) {
      try (RandomCase random = new RandomCase(spark, seed, codec.getName())) {
        try {
          MapTask packed = written(random, true);
          MapTask plain = written(random, false);
          assertEquals(0, plain.rowBlocks);
          if (random.hasRoom()) {
            packedBytes += packed.dataFile().length();
            plainBytes += plain.dataFile().length();
          }
          rowBlocks += packed.rowBlocks;
          packed.remove();
          plain.remove();
        } catch (Exception | AssertionError e) {
          throw new AssertionError("-Dfaro.write.seed=" + seed + ": " + random + ": " + e, e);
        }
      }
    }
    // Streams of zstd have fewer and longer blocks.
    assertTrue(SEED != null || rowBlocks > 2L * cases, rowBlocks + " row blocks");
    assertTrue(packedBytes <= plainBytes, packedBytes + " bytes with row blocks, " + plainBytes + " without");
  }

  private static MapTask written(RandomCase random, boolean packs) throws Exception {
    spark.use(random.conf);
    MapTask task =
        new MapTask(spark.context, random.conf, random.rows.partitions, MapTask.FARO, random.memoryBytes);
    task.packs = packs;
    task.write(random.rowsFor(task));
    task.context.markTaskCompleted(Option.empty());
    assertEquals(0, task.leaked(), "bytes of memory");
    assertEquals(Digest.of(random.rows), Digest.written(task));
    return task;
  }
}
