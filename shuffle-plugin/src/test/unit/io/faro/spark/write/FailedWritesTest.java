package io.faro.spark.write;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.rows.BlockCompressor;
import io.faro.rows.RowCodec;
import io.faro.spark.write.RandomRows.Rows;
import io.faro.spark.write.RandomRows.Sizes;
import java.io.File;
import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.function.IntConsumer;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkException;
import org.apache.spark.TaskKilledException;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import scala.Option;
import scala.Product2;

/** Writes that fail or are killed: the right exception, and no file, page, descriptor or compressor is left. */
class FailedWritesTest {
  private static final int PARTITIONS = 50;
  private static final long BYTES = 3 << 20;
  private static LocalSpark spark;
  private static RandomRows rows;

  @BeforeAll
  static void open() throws Exception {
    spark = new LocalSpark();
    rows = new RandomRows(new Random(7), PARTITIONS, Sizes.MIXED, 12_000);
  }

  @AfterAll
  static void close() throws Exception {
    rows.close();
    spark.close();
  }

  /** With Spark's writer for few partitions out of the way, and so with spills. */
  private static SparkConf conf(String codec) {
    SparkConf conf = spark.conf(codec).set("spark.shuffle.sort.bypassMergeThreshold", "0");
    spark.use(conf);
    return conf;
  }

  private static MapTask task(SparkConf conf) {
    return new MapTask(spark.context, conf, PARTITIONS, MapTask.FARO, BYTES);
  }

  /** The rows; before the one with a number {@code act} gets that number. */
  private static Rows with(IntConsumer act) {
    Rows all = rows.rows();
    return new Rows() {
      private int done;

      @Override
      public boolean hasNext() {
        return all.hasNext();
      }

      @Override
      public Product2<Integer, UnsafeRow> next() {
        act.accept(done++);
        return all.next();
      }
    };
  }

  private static void nothingIsLeft(MapTask task) throws ReflectiveOperationException {
    assertNull(task.status);
    assertEquals(Collections.emptySet(), spark.files(task.conf));
    assertEquals(0, task.pages(), "pages of memory");
    task.leaked();
  }

  /** Descriptors of files in the local directories. */
  private static List<Path> descriptors() throws IOException {
    try (Stream<Path> all = Files.list(Paths.get("/proc/self/fd"))) {
      return all.map(FailedWritesTest::target).filter(path -> path.startsWith(spark.root))
          .collect(Collectors.toList());
    }
  }

  private static Path target(Path link) {
    try {
      return Files.readSymbolicLink(link);
    } catch (IOException e) {
      // Closed since it was listed.
      return link;
    }
  }

  /** Returns the number that a new compressor gets: the lowest of those that are not in use. */
  private static long place() throws ReflectiveOperationException {
    Field handle = BlockCompressor.class.getDeclaredField("handle");
    handle.setAccessible(true);
    try (BlockCompressor compressor = BlockCompressor.open(RowCodec.LZ4, 1, 32 << 20)) {
      return (long) handle.get(compressor) & 0xffff_ffffL;
    }
  }

  /** Local directories are lost and files are in their place from half of the rows on, until the writer has failed. */
  private static void withoutDirectories(MapTask task) throws Exception {
    File[] directories = spark.localDirectories(task.conf);
    boolean[] gone = new boolean[1];
    try {
      Throwable thrown = assertThrows(Throwable.class, () -> task.write(with(i -> {
        if (i == rows.count / 2) {
          gone[0] = true;
          for (File directory : directories) {
            move(directory, true);
          }
        }
      })));
      assertTrue(thrown instanceof IOException, thrown.toString());
    } finally {
      assertTrue(gone[0]);
      for (File directory : directories) {
        move(directory, false);
      }
    }
  }

  /** A directory out of the way without its files, and a file in its place; or back. */
  private static void move(File directory, boolean away) {
    Path path = directory.toPath();
    Path aside = path.resolveSibling(path.getFileName() + ".away");
    try {
      if (away) {
        try (Stream<Path> all = Files.walk(path)) {
          all.map(Path::toFile).filter(File::isFile).forEach(file -> assertTrue(file.delete()));
        }
        Files.move(path, aside);
        Files.createFile(path);
      } else {
        Files.delete(path);
        Files.move(aside, path);
      }
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  @Test
  void aSpillThatCannotBeWritten() throws Exception {
    MapTask task = task(conf("lz4").set("spark.shuffle.spill.numElementsForceSpillThreshold", "2000"));
    withoutDirectories(task);
    nothingIsLeft(task);
    assertEquals(Collections.emptyList(), descriptors());
  }

  @Test
  void aDataFileThatCannotBeWritten() throws Exception {
    MapTask task = new MapTask(spark.context, conf("zstd"), PARTITIONS, MapTask.FARO, 256 << 20);
    withoutDirectories(task);
    assertEquals(0, task.metrics.diskBytesSpilled());
    nothingIsLeft(task);
    assertEquals(Collections.emptyList(), descriptors());
  }

  /** No execution memory is to be had, so that blocks go to the partitions' files. */
  @Test
  void aPartitionsFileThatCannotBeWritten() throws Exception {
    MapTask task = new MapTask(spark.context, fewPartitions(), PARTITIONS, MapTask.FARO, 1);
    withoutDirectories(task);
    assertEquals(0, task.metrics.peakExecutionMemory());
    nothingIsLeft(task);
    assertEquals(Collections.emptyList(), descriptors());
  }

  /** Small blocks, so that each partition has some. */
  private static SparkConf fewPartitions() {
    return conf("lz4").set("spark.shuffle.sort.bypassMergeThreshold", "200")
        .set("spark.io.compression.lz4.blockSize", "1k");
  }

  @Test
  void aKilledTaskEndsAtItsNextWriteToAPartitionsFile() throws Exception {
    MapTask task = new MapTask(spark.context, fewPartitions(), PARTITIONS, MapTask.FARO, 1);
    int[] last = new int[1];
    assertThrows(TaskKilledException.class, () -> task.write(with(i -> {
      last[0] = i;
      if (i == 8_000) {
        task.context.markInterrupted("killed by the test");
      }
    })));
    assertTrue(last[0] < rows.count - 1, "it took all rows");
    nothingIsLeft(task);
    assertEquals(Collections.emptyList(), descriptors());
  }

  /** The index file's name is a directory's, so that Spark's resolver fails after the data file was written. */
  @Test
  void aCommitThatFails() throws Exception {
    MapTask task = task(conf("lz4"));
    File index = task.resolver().getIndexFile(task.dependency.shuffleId(), task.mapId, Option.empty());
    Path inside = Files.createDirectories(index.toPath().resolve("inside"));
    assertThrows(SparkException.class, () -> task.write(rows.rows()));
    Files.delete(inside);
    Files.delete(index.toPath());
    nothingIsLeft(task);
    assertEquals(Collections.emptyList(), descriptors());
  }

  @Test
  void aKilledTaskEndsAtItsNextWrite() throws Exception {
    MapTask task = task(conf("lz4"));
    assertThrows(TaskKilledException.class, () -> task.write(with(i -> {
      if (i == 8_000) {
        task.context.markInterrupted("killed by the test");
      }
    })));
    assertTrue(task.metrics.diskBytesSpilled() > 0, "it was not the first spill");
    nothingIsLeft(task);
  }

  /** A fault of a task in mid-write. */
  private enum Trouble {
    THROWS {
      @Override
      void happens(MapTask task, Neighbour other) {
        throw new IllegalStateException("thrown by the test");
      }
    },
    ERROR {
      @Override
      void happens(MapTask task, Neighbour other) {
        throw new OutOfMemoryError("thrown by the test");
      }
    },
    KILLED {
      @Override
      void happens(MapTask task, Neighbour other) {
        task.context.markInterrupted("killed by the test");
      }
    },
    /** The next write of a file closes it and throws. */
    INTERRUPTED {
      @Override
      void happens(MapTask task, Neighbour other) {
        Thread.currentThread().interrupt();
      }
    },
    NO_MEMORY {
      @Override
      void happens(MapTask task, Neighbour other) {
        other.acquireMemory(BYTES);
      }
    };

    /** {@code other} gives no memory back. */
    abstract void happens(MapTask task, Neighbour other);
  }

  /** At a random row, while another consumer takes memory and spills at random. */
  @Test
  void twoHundredFailuresLeaveNothing() throws Exception {
    long seed = System.nanoTime();
    Random random = new Random(seed);
    SparkConf[] confs = {spark.conf("lz4"), spark.conf("zstd"), spark.conf("none")};
    long place = place();
    int[] failed = new int[Trouble.values().length];
    for (int i = 0; i < 200; i++) {
      SparkConf conf = confs[random.nextInt(3)].clone()
          .set("spark.memory.offHeap.enabled", Boolean.toString(random.nextBoolean()))
          .set("spark.shuffle.sort.bypassMergeThreshold", random.nextInt(3) == 0 ? "200" : "0")
          .set("spark.shuffle.spill.numElementsForceSpillThreshold", random.nextBoolean() ? "1000" : "100000");
      spark.use(conf);
      MapTask task = task(conf);
      Trouble trouble = Trouble.values()[random.nextInt(failed.length)];
      failed[trouble.ordinal()] += fails(task, trouble, random) ? 1 : 0;
      if (task.status == null) {
        nothingIsLeft(task);
      }
      task.remove();
      assertEquals(Collections.emptySet(), spark.files(conf), trouble + ", seed " + seed);
    }
    assertEquals(Collections.emptyList(), descriptors());
    assertEquals(place, place(), "compressors are left");
    for (Trouble trouble : Trouble.values()) {
      assertTrue(failed[trouble.ordinal()] > 15, trouble + ": " + failed[trouble.ordinal()] + " tasks failed");
    }
  }

  private static boolean fails(MapTask task, Trouble trouble, Random random) throws Exception {
    int when = random.nextInt(2000);
    Neighbour neighbour = new Neighbour(task.memory, random.nextLong(), BYTES / 2, 100, Neighbour.OnSpill.FREES);
    Neighbour other = new Neighbour(task.memory, 0, 0, 1, Neighbour.OnSpill.NOTHING);
    try {
      task.write(neighbour.between(with(row -> {
        if (row == when) {
          trouble.happens(task, other);
        }
      })));
      return false;
    } catch (Exception | OutOfMemoryError e) {
      return true;
    } finally {
      Thread.interrupted();
      neighbour.free();
      other.free();
    }
  }
}
