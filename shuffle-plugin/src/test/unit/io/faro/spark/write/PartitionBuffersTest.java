package io.faro.spark.write;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.FaroException;
import io.faro.TestLibrary;
import io.faro.rows.BlockCompressor;
import io.faro.rows.RowCodec;
import io.faro.spark.codec.BlockInputStream;
import io.faro.spark.conf.SpillLimits;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.apache.spark.SparkConf;
import org.apache.spark.memory.MemoryConsumer;
import org.apache.spark.memory.SparkOutOfMemoryError;
import org.apache.spark.memory.TaskMemoryManager;
import org.apache.spark.memory.UnifiedMemoryManager;
import org.apache.spark.unsafe.Platform;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Buffers with little memory, in whose way other consumers of the task are. Rows are not compressed. */
class PartitionBuffersTest {
  private static final int PARTITIONS = 2;
  private static final int BLOCK_BYTES = 64 << 10;
  private static final long MIB = 1 << 20;

  @TempDir
  Path directory;
  private int names;
  private final TaskMemoryManager memory =
      new TaskMemoryManager(new UnifiedMemoryManager(new SparkConf(false), 4 * MIB, 0, 1), 0);
  private final WriteContext context = new WriteContext(
      PARTITIONS, new PartitionSums(null, PARTITIONS), false, () -> { });
  private final Spills spills = new Spills(() -> directory.resolve("spill" + names++).toFile(), context);
  private final BlockCompressor compressor = BlockCompressor.open(RowCodec.NONE, 1, 32 << 20);
  private PartitionBuffers buffers = buffers(BLOCK_BYTES);
  private final int[] added = new int[PARTITIONS];

  @BeforeAll
  static void library() throws FaroException {
    TestLibrary.load();
  }

  private PartitionBuffers buffers(int blockBytes) {
    return new PartitionBuffers(memory, PARTITIONS, blockBytes, 32 * MIB,
        new SpillLimits(Long.MAX_VALUE, Long.MAX_VALUE), compressor, spills);
  }

  @AfterEach
  void nothingIsLeft() {
    buffers.close();
    compressor.close();
    spills.close();
    assertEquals(0, memory.getMemoryConsumptionForThisTask() + memory.cleanUpAllAllocatedMemory());
  }

  /** A row of so many bytes, at least 8, with a number in its first word and the same in the last one. */
  private void add(int partition, int size) throws IOException {
    byte[] row = new byte[size];
    ByteBuffer.wrap(row).putLong(added[partition]).putLong(size - 8, added[partition]);
    added[partition]++;
    buffers.add(partition, row, Platform.BYTE_ARRAY_OFFSET, size);
  }

  /** Writes the data file and checks that all rows are there, in the order of each partition. */
  private void writeAndCheck() throws IOException {
    File data = directory.resolve("data").toFile();
    long[] lengths;
    try (PartitionFile out = new PartitionFile(data, context, null)) {
      buffers.writeTo(out);
      lengths = out.lengths;
    }
    ByteBuffer rows = ByteBuffer.wrap(data.exists() ? Files.readAllBytes(data.toPath()) : new byte[0]);
    int end = 0;
    for (int i = 0; i < PARTITIONS; i++) {
      end += (int) lengths[i];
      int found = 0;
      while (rows.position() < end) {
        int size = rows.getInt();
        assertEquals(found, rows.getLong(rows.position()), "the first word");
        assertEquals(found, rows.getLong(rows.position() + size - 8), "the last word");
        rows.position(rows.position() + size);
        found++;
      }
      assertEquals(end, rows.position());
      assertEquals(added[i], found, "rows of partition " + i);
    }
    assertEquals(end, rows.limit());
  }

  private void refused(String problem, int partition, int size) {
    String thrown = assertThrows(IllegalArgumentException.class,
        () -> buffers.add(partition, new byte[64], Platform.BYTE_ARRAY_OFFSET, size)).getMessage();
    assertTrue(thrown.contains(problem), thrown);
  }

  @Test
  void whatIsNoRowIsRefused() throws IOException {
    refused("partition 2 of 2", 2, 8);
    refused("partition -1 of 2", -1, 8);
    refused("partition -2147483648 of 2", Integer.MIN_VALUE, 8);
    refused("a row of -8 bytes", 0, -8);
    refused("a row of -2147483648 bytes", 0, Integer.MIN_VALUE);
    refused("a row of 12 bytes", 1, 12);
    add(1, 8);
    refused("a row of 2147483647 bytes", 1, Integer.MAX_VALUE);
    writeAndCheck();
  }

  @Test
  void outputOfTenTimesTheMemory() throws IOException {
    for (int i = 0; i < 40 * MIB / 1000; i++) {
      add(i % 7 == 0 ? 1 : 0, 1000);
    }
    writeAndCheck();
    assertTrue(spills.diskBytes() > 20 * MIB, spills.diskBytes() + " bytes spilled");
    assertTrue(spills.memoryBytes() > 20 * MIB, spills.memoryBytes() + " bytes of memory freed");
    assertTrue(buffers.peakBytes() <= 4 * MIB, buffers.peakBytes() + " bytes at most");
  }

  @Test
  void aRowOfMoreThanTheMemory() throws IOException {
    add(0, 80);
    add(1, (int) (10 * MIB));
    add(1, 8);
    add(0, (int) (5 * MIB));
    writeAndCheck();
    assertTrue(spills.diskBytes() > 0);
  }

  @Test
  void rowsAroundTheLengthOfABuffer() throws IOException {
    for (int size = BLOCK_BYTES - 24; size <= BLOCK_BYTES + 24; size += 8) {
      add(0, size);
      add(1, 8);
      add(0, 16);
      add(0, size);
      add(0, 2 * size);
    }
    writeAndCheck();
  }

  @Test
  void withoutRowsThereIsNoFile() throws IOException {
    writeAndCheck();
    assertTrue(!directory.resolve("data").toFile().exists());
    assertEquals(0, buffers.peakBytes());
  }

  /** Another consumer has all memory, and Spark has none for the smallest buffers. */
  @Test
  void withoutMemoryItIsSparksError() {
    GreedyConsumer other = new GreedyConsumer(0);
    other.acquireMemory(4 * MIB);
    assertThrows(SparkOutOfMemoryError.class, () -> add(0, 8));
    other.freeMemory(other.getUsed());
  }

  /** Takes memory in its spill, as Spark's sorters do; more than it gave back here, so that the buffers must spill. */
  private final class GreedyConsumer extends MemoryConsumer {
    private final long takes;
    private int asked;

    GreedyConsumer(long takes) {
      this(memory, takes);
    }

    GreedyConsumer(TaskMemoryManager of, long takes) {
      super(of, of.getTungstenMemoryMode());
      this.takes = takes;
    }

    @Override
    public long spill(long size, MemoryConsumer trigger) {
      asked++;
      if (trigger == this || takes == 0) {
        return 0;
      }
      long freed = getUsed();
      freeMemory(freed);
      acquireMemory(takes);
      return Math.max(0, freed - getUsed());
    }
  }

  /** The buffers spill, and are closed, while they ask for larger ones or for memory of their first block. */
  @Test
  void aSpillOfAnotherConsumerThatNeedsMemoryItself() throws IOException {
    for (int blockBytes : new int[] {BLOCK_BYTES, (int) MIB}) {
      for (long takes = MIB / 2; takes < 3 * MIB; takes += MIB / 2) {
        for (long has = MIB / 2; has < 3 * MIB; has += MIB / 2) {
          buffers.close();
          buffers = buffers(blockBytes);
          Arrays.fill(added, 0);
          GreedyConsumer other = new GreedyConsumer(takes);
          other.acquireMemory(has);
          for (int i = 0; i < 600; i++) {
            add(i % 2, i % 50 == 0 ? 2 * BLOCK_BYTES : 8000);
          }
          other.freeMemory(other.getUsed());
          writeAndCheck();
          spills.close();
        }
      }
    }
  }

  /** Rows of which about half are random bytes, for partitions in turn; the data file's bytes. */
  private long fileOf(int partitions, RowCodec codec, int blockBytes, long refusedUntil, long rows) throws IOException {
    TaskMemoryManager of = new TaskMemoryManager(
        new UnifiedMemoryManager(new SparkConf(false), 128 * MIB, 0, 1), 0);
    WriteContext writes = new WriteContext(partitions, new PartitionSums(null, partitions), false, () -> { });
    Spills none = new Spills(() -> directory.resolve("spill" + names++).toFile(), writes);
    GreedyConsumer other = new GreedyConsumer(of, 0);
    Random random = new Random(1);
    byte[] row = new byte[96];
    File data = directory.resolve("data" + names++).toFile();
    try (BlockCompressor compressing = BlockCompressor.open(codec, 1, blockBytes);
        PartitionBuffers all = new PartitionBuffers(of, partitions, blockBytes, 32 * MIB,
            new SpillLimits(Long.MAX_VALUE, Long.MAX_VALUE), compressing, none);
        PartitionFile out = new PartitionFile(data, writes, null)) {
      for (long i = 0; i < rows; i++) {
        if (i == 1 && refusedUntil > 0) {
          other.acquireMemory(128 * MIB);
          // Room for blocks, but none for larger buffers.
          other.freeMemory(600 << 10);
        } else if (i == refusedUntil) {
          other.freeMemory(other.getUsed());
        }
        random.nextBytes(row);
        Arrays.fill(row, 0, 56, (byte) 0);
        all.add((int) (i % partitions), row, Platform.BYTE_ARRAY_OFFSET, row.length);
      }
      all.writeTo(out);
      return Arrays.stream(out.lengths).sum();
    } finally {
      none.close();
      other.freeMemory(other.getUsed());
      assertEquals(0, of.getMemoryConsumptionForThisTask() + of.cleanUpAllAllocatedMemory());
    }
  }

  /** 4,000 partitions, and Spark refuses memory in the first 2 % of the rows. */
  @Test
  void afterARefusalBuffersGrowAgain() throws IOException {
    long rows = 400_000;
    long always = fileOf(4000, RowCodec.LZ4, 32 << 10, 0, rows);
    long refused = fileOf(4000, RowCodec.LZ4, 32 << 10, rows / 50, rows);
    assertTrue(refused < always * 1.1, refused + " bytes after a refusal, " + always + " without one");
  }

  /** Where memory stays refused, few attempts are made: each may cost other consumers a spill. */
  @Test
  void whileMemoryIsRefusedItIsSeldomAskedFor() throws IOException {
    GreedyConsumer other = new GreedyConsumer(memory, 0);
    add(0, 8);
    other.acquireMemory(4 * MIB);
    other.freeMemory(400 << 10);
    for (int i = 0; i < 20_000; i++) {
      add(i % 2, 1000);
    }
    assertTrue(other.asked < 200, "asked " + other.asked + " times to spill");
    other.freeMemory(other.getUsed());
    writeAndCheck();
  }

  /** A frame of zstd may take more than half of a page, and most take less. */
  @Test
  void pagesOfBlocksAreFilled() throws IOException {
    Random random = new Random(1);
    try (BlockCompressor zstd = BlockCompressor.open(RowCodec.ZSTD, 1, 128 << 10);
        PartitionBuffers frames = new PartitionBuffers(memory, 1, 128 << 10, 32 * MIB,
            new SpillLimits(Long.MAX_VALUE, Long.MAX_VALUE), zstd, spills)) {
      byte[] row = new byte[4096];
      long peak = 0;
      for (int i = 0; i < 900; i++) {
        random.nextBytes(row);
        Arrays.fill(row, 0, 1400, (byte) 0);
        frames.add(0, row, Platform.BYTE_ARRAY_OFFSET, row.length);
        peak = Math.max(peak, memory.getMemoryConsumptionForThisTask());
      }
      long blocks = peak - (128 << 10);
      long bytes;
      try (PartitionFile out = new PartitionFile(directory.resolve("frames").toFile(), context, null)) {
        frames.writeTo(out);
        bytes = out.lengths[0];
      }
      assertEquals(0, spills.diskBytes());
      assertTrue(blocks < bytes * 1.25, blocks + " bytes of pages for " + bytes + " of frames");
    }
  }

  /** The methods of the blocks of one partition's file, and how many original bytes each has. */
  private static List<int[]> blocks(byte[] file) {
    List<int[]> blocks = new ArrayList<>();
    ByteBuffer bytes = ByteBuffer.wrap(file).order(ByteOrder.LITTLE_ENDIAN);
    while (bytes.hasRemaining()) {
      int at = bytes.position();
      blocks.add(new int[] {bytes.get(at + 8) & 0xf0, bytes.getInt(at + 13)});
      bytes.position(at + 21 + bytes.getInt(at + 9));
    }
    return blocks;
  }

  /**
   * Returns the blocks that a writer with row blocks makes of these rows of one partition; its decoded bytes are
   * checked.
   */
  private List<int[]> packed(byte[]... rows) throws IOException {
    File data = directory.resolve("packed" + names++).toFile();
    long made;
    try (BlockCompressor packing = BlockCompressor.openForRows(RowCodec.LZ4, 1, BLOCK_BYTES, 1);
        PartitionBuffers all = new PartitionBuffers(memory, 1, BLOCK_BYTES, 32 * MIB,
            new SpillLimits(Long.MAX_VALUE, Long.MAX_VALUE), packing, spills);
        PartitionFile out = new PartitionFile(data, context, null)) {
      for (byte[] row : rows) {
        all.add(0, row, Platform.BYTE_ARRAY_OFFSET, row.length);
      }
      all.writeTo(out);
      made = packing.rowBlocks();
    }
    byte[] file = Files.readAllBytes(data.toPath());
    try (DataInputStream in = new DataInputStream(new BlockInputStream(new ByteArrayInputStream(file)))) {
      for (byte[] row : rows) {
        byte[] found = new byte[in.readInt()];
        in.readFully(found);
        assertArrayEquals(row, found);
      }
      assertEquals(-1, in.read());
    }
    List<int[]> blocks = blocks(file);
    assertEquals(made, blocks.stream().filter(block -> block[0] == 0x30).count());
    return blocks;
  }

  private static byte[] counted(int number, int size) {
    return ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN).putLong(0).putLong(1_000_000L + number).array();
  }

  /** The bytes of each partition's blocks, and those that Spark is told. */
  private long[][] written(BlockCompressor compressor, boolean spill) throws IOException {
    File data = directory.resolve("told" + names++).toFile();
    Spills own = new Spills(() -> directory.resolve("spilled" + names++).toFile(),
        new WriteContext(2, new PartitionSums(null, 2), false, () -> { }));
    try (PartitionBuffers all = new PartitionBuffers(memory, 2, BLOCK_BYTES, 32 * MIB,
            new SpillLimits(spill ? 5_000 : Long.MAX_VALUE, Long.MAX_VALUE), compressor, own);
        PartitionFile out = new PartitionFile(data, new WriteContext(2, new PartitionSums(null, 2), false, () -> { }),
            null)) {
      for (int i = 0; i < 30_000; i++) {
        // The second partition has a tenth of the rows.
        byte[] row = counted(i, 16);
        all.add(i % 11 == 0 ? 1 : 0, row, Platform.BYTE_ARRAY_OFFSET, row.length);
      }
      all.writeTo(out);
      return new long[][] {
          out.lengths.clone(), {all.codecBytes(0, out.lengths[0]), all.codecBytes(1, out.lengths[1])}};
    } finally {
      own.close();
    }
  }

  /** So adaptive execution gives a task as many rows as without row blocks, also where rows were spilled. */
  @Test
  void sparkIsToldWhatTheCodecAloneWouldHaveWritten() throws IOException {
    for (boolean spill : new boolean[] {false, true}) {
      try (BlockCompressor plain = BlockCompressor.open(RowCodec.LZ4, 1, BLOCK_BYTES);
          BlockCompressor packing = BlockCompressor.openForRows(RowCodec.LZ4, 1, BLOCK_BYTES, 1)) {
        long[][] without = written(plain, spill);
        assertArrayEquals(without[0], without[1]);
        long[][] with = written(packing, spill);
        for (int i = 0; i < 2; i++) {
          assertTrue(with[0][i] < without[0][i] * 0.7, with[0][i] + " of " + without[0][i]);
          assertEquals(without[0][i], with[1][i], without[0][i] * 0.1, "partition " + i + ", spills: " + spill);
        }
      }
    }
  }

  /** Rows of which no whole number fits into a buffer. */
  @Test
  void rowBlocksBeginAndEndAtRows() throws IOException {
    byte[][] rows = new byte[20_000][];
    for (int i = 0; i < rows.length; i++) {
      rows[i] = counted(i, 72);
    }
    List<int[]> blocks = packed(rows);
    assertEquals(0, blocks.remove(blocks.size() - 1)[1], "the end of the stream");
    for (int[] block : blocks) {
      assertEquals(0x30, block[0]);
      assertEquals(0, block[1] % 76);
    }
    assertTrue(blocks.size() <= 20_000 * 76 / (BLOCK_BYTES - 76) + 1, blocks.size() + " blocks");
  }

  /** Zeros in the inside of a row look like rows without columns. */
  @Test
  void whatIsInsideOfARowBecomesNoRowBlock() throws IOException {
    byte[][] rows = new byte[300][];
    for (int i = 0; i < rows.length; i++) {
      rows[i] = i % 100 == 50 ? new byte[3 * BLOCK_BYTES + 8 * i] : counted(i, 1000);
    }
    List<int[]> blocks = packed(rows);
    assertTrue(blocks.stream().anyMatch(block -> block[0] == 0x30), "no row block");
    assertTrue(blocks.stream().filter(block -> block[0] != 0x30 && block[1] == BLOCK_BYTES).count() >= 6,
        "the long rows are in blocks of their own");
  }

  @Test
  void anotherThreadsRequestFreesNothing() throws Exception {
    add(0, 1000);
    long[] freed = new long[1];
    Thread other = new Thread(() -> {
      try {
        freed[0] = buffers.spill(MIB, new GreedyConsumer(0));
      } catch (IOException e) {
        freed[0] = -1;
      }
    });
    other.start();
    other.join();
    assertEquals(0, freed[0]);
    writeAndCheck();
  }

  /**
   * Spark turns an IOException of a spill into an error of its own, which the buffers take for a lack of memory.
   * Nothing of the half that was spilled may be written again.
   */
  @Test
  void afterAFailedSpillThereIsNoOutput() throws IOException {
    while (memory.getMemoryConsumptionForThisTask() < 3 * MIB) {
      add(0, 8000);
    }
    GreedyConsumer other = new GreedyConsumer(0);
    other.acquireMemory(4 * MIB - memory.getMemoryConsumptionForThisTask());
    Path blocked = directory.resolve("spill" + names);
    Files.createDirectory(blocked);
    assertThrows(SparkOutOfMemoryError.class, () -> other.acquireMemory(MIB));
    Files.delete(blocked);
    IOException failed = assertThrows(IOException.class, () -> {
      for (int i = 0; i < 10_000; i++) {
        add(0, 8000);
      }
      writeAndCheck();
    });
    assertTrue(failed.getCause() instanceof IOException, () -> failed + " caused by " + failed.getCause());
    other.freeMemory(other.getUsed());
  }
}
