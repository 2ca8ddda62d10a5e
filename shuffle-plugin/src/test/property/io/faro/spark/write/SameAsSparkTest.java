package io.faro.spark.write;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.rows.RowCodec;
import java.io.File;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.Collections;
import java.util.TreeSet;
import java.util.zip.Adler32;
import java.util.zip.CRC32;
import java.util.zip.Checksum;
import org.apache.spark.SparkConf;
import org.apache.spark.scheduler.MapStatus;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import scala.Option;

/**
 * Faro's writer and Spark's get the same random rows; Spark's own classes read the same rows from both outputs. {@code
 * -Dfaro.write.cases=N} asks for more cases, {@code -Dfaro.write.seed=S} for the case with that seed alone:
 * {@code mvn -pl jvm,shuffle-plugin test -Dtest=SameAsSparkTest -Dsurefire.failIfNoSpecifiedTests=false}.
 */
class SameAsSparkTest {
  private static final int CASES = Integer.getInteger("faro.write.cases", 40);
  private static final Long SEED = Long.getLong("faro.write.seed");
  private static final long SPARKS_BYTES = 256 << 20;
  private static final int SPARKS_BLOCK_BYTES = 32 << 10;
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
  void sparkReadsTheSameRows() throws Exception {
    for (long seed = SEED == null ? 0 : SEED; seed < (SEED == null ? CASES : SEED + 1); seed++) {
      try (RandomCase random = new RandomCase(spark, seed)) {
        try {
          check(random);
        } catch (Exception | AssertionError e) {
          throw new AssertionError("-Dfaro.write.seed=" + seed + ": " + random + ": " + e, e);
        }
      }
    }
  }

  private static void check(RandomCase random) throws Exception {
    spark.use(random.conf);
    assertEquals(Collections.emptySet(), spark.files(random.conf));
    MapTask faro =
        new MapTask(spark.context, random.conf, random.rows.partitions, MapTask.FARO, random.memoryBytes);
    faro.write(random.rowsFor(faro));
    faro.context.markTaskCompleted(Option.empty());
    assertEquals(0, faro.leaked(), "bytes of memory");
    checkFiles(faro);

    MapTask sparks = new MapTask(spark.context, random.conf, random.rows.partitions, MapTask.SPARK, SPARKS_BYTES);
    sparks.write(random.rows.rows());
    Digest expected = Digest.of(random.rows);
    assertEquals(expected, Digest.written(sparks));
    assertEquals(expected, Digest.written(faro));
    checkMetrics(random, faro, sparks);
    checkStatus(faro, sparks);
    if (isExact(random, faro)) {
      assertArrayEquals(sparks.lengths, faro.lengths);
      assertArrayEquals(bytes(sparks), bytes(faro));
    }
    faro.remove();
    sparks.remove();
    sparks.leaked();
  }

  /**
   * Returns whether Faro's file has the same bytes as Spark's: nothing is spilled, each buffer can hold a whole block,
   * and the blocks are as long as Spark's, which follow the application's configuration, not the case's.
   */
  private static boolean isExact(RandomCase random, MapTask faro) {
    WriterConf conf = new WriterConf(faro.conf, true);
    long buffers = (long) faro.partitions * conf.blockBytes;
    boolean whole = conf.codec == RowCodec.NONE
        || conf.codec == RowCodec.LZ4 && conf.blockBytes == SPARKS_BLOCK_BYTES
            && buffers <= conf.maxBytes(faro.memory.pageSizeBytes());
    return whole && random.hasRoom();
  }

  private static byte[] bytes(MapTask task) throws Exception {
    File data = task.dataFile();
    return data.exists() ? Files.readAllBytes(data.toPath()) : new byte[0];
  }

  /** Index, checksums and lengths agree with the data file, and there is no other file. */
  private static void checkFiles(MapTask task) throws Exception {
    File data = task.dataFile();
    byte[] bytes = bytes(task);
    int shuffle = task.dependency.shuffleId();
    File index = task.resolver().getIndexFile(shuffle, task.mapId, Option.empty());
    ByteBuffer offsets = ByteBuffer.wrap(Files.readAllBytes(index.toPath()));
    assertEquals(8 * (task.partitions + 1), offsets.limit());
    TreeSet<String> names = new TreeSet<>(Collections.singleton(index.getName()));
    ByteBuffer sums = null;
    // Without rows there is neither a data file nor one of checksums.
    if (bytes.length > 0 && task.conf.getBoolean("spark.shuffle.checksum.enabled", true)) {
      File checksums = task.resolver().getChecksumFile(shuffle, task.mapId, algorithm(task.conf), Option.empty());
      sums = ByteBuffer.wrap(Files.readAllBytes(checksums.toPath()));
      assertEquals(8 * task.partitions, sums.limit());
      names.add(checksums.getName());
    }
    if (bytes.length > 0) {
      names.add(data.getName());
    }
    assertEquals(names, spark.files(task.conf));
    long at = offsets.getLong();
    assertEquals(0, at);
    for (int i = 0; i < task.partitions; i++) {
      long end = offsets.getLong();
      assertEquals(task.lengths[i], end - at, "bytes of partition " + i);
      if (sums != null) {
        Checksum sum = algorithm(task.conf).equals("CRC32") ? new CRC32() : new Adler32();
        sum.update(bytes, (int) at, (int) (end - at));
        assertEquals(sum.getValue(), sums.getLong(), "checksum of partition " + i);
      }
      at = end;
    }
    assertEquals(bytes.length, at);
  }

  private static String algorithm(SparkConf conf) {
    return conf.get("spark.shuffle.checksum.algorithm");
  }

  private static void checkMetrics(RandomCase random, MapTask faro, MapTask sparks) {
    assertEquals(sparks.dataSize.value(), faro.dataSize.value());
    assertEquals(random.rows.count, faro.metrics.shuffleWriteMetrics().recordsWritten());
    assertEquals(sparks.metrics.shuffleWriteMetrics().recordsWritten(), random.rows.count);
    assertEquals(faro.dataFile().length(), faro.metrics.shuffleWriteMetrics().bytesWritten());
    long memory = faro.metrics.memoryBytesSpilled();
    long disk = faro.metrics.diskBytesSpilled();
    assertEquals(memory > 0, disk > 0, memory + " bytes of memory, " + disk + " of files spilled");
    assertTrue(disk <= faro.dataFile().length(), disk + " bytes in spills of " + faro.dataFile().length());
    assertTrue(faro.metrics.peakExecutionMemory() <= random.memoryBytes);
    assertEquals(random.rows.count > 0, random.few || faro.metrics.peakExecutionMemory() > 0);
    assertTrue(!random.hasRoom() || disk == 0, disk + " bytes spilled without a reason");
    boolean limited = !random.few && random.maxRows > 0 && random.rows.count >= random.maxRows;
    assertTrue(!limited || disk > 0, "rows above the limit");
  }

  private static void checkStatus(MapTask faro, MapTask sparks) {
    assertEquals(sparks.status.location(), faro.status.location());
    assertEquals(MapTask.FARO, faro.status.mapId());
    byte[] sizes = new byte[faro.partitions];
    byte[] expected = new byte[faro.partitions];
    for (int i = 0; i < faro.partitions; i++) {
      assertEquals(sparks.lengths[i] > 0, faro.lengths[i] > 0, "whether partition " + i + " has bytes");
      sizes[i] = MapStatus.compressSize(faro.status.getSizeForBlock(i));
      expected[i] = MapStatus.compressSize(faro.lengths[i]);
      assertEquals(faro.lengths[i] > 0, faro.status.getSizeForBlock(i) > 0, "the size told of partition " + i);
    }
    if (faro.partitions <= 2000) {
      assertArrayEquals(expected, sizes, () -> Arrays.toString(faro.lengths));
    }
  }
}
