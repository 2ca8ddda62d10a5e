package io.faro.spark.write;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.FaroException;
import io.faro.TestLibrary;
import io.faro.rows.BlockCompressor;
import io.faro.rows.RowCodec;
import io.faro.spark.conf.SpillLimits;
import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import org.apache.spark.SparkConf;
import org.apache.spark.memory.MemoryConsumer;
import org.apache.spark.memory.MemoryMode;
import org.apache.spark.memory.TaskMemoryManager;
import org.apache.spark.memory.UnifiedMemoryManager;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.RDDBlockId;
import org.apache.spark.storage.memory.MemoryStore;
import org.apache.spark.unsafe.Platform;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import scala.Option;

/** Memory of an executor most of which has cached blocks, beyond the part that Spark keeps for them. */
class SpareMemoryTest {
  private static final int PARTITIONS = 20;
  private static final int BLOCK_BYTES = 32 << 10;
  private static final int ROW_BYTES = 1000;
  private static final long MIB = 1 << 20;
  private static final long ALL_BYTES = 256 * MIB;

  @TempDir
  Path directory;
  private int names;
  private final SparkConf conf = new SparkConf(false).set("spark.buffer.pageSize", "8m");
  private final UnifiedMemoryManager all = new UnifiedMemoryManager(conf, ALL_BYTES, ALL_BYTES / 2, 1);
  private final TaskMemoryManager memory = new TaskMemoryManager(all, 0);
  private final Store store = new Store();
  private final WriteContext context =
      new WriteContext(PARTITIONS, new PartitionSums(null, PARTITIONS), false, () -> { });

  @BeforeAll
  static void library() throws FaroException {
    TestLibrary.load();
  }

  /** Cached blocks of which Spark wants some evicted. */
  private final class Store extends MemoryStore {
    private long evicted;

    Store() {
      super(conf, null, null, all, null);
    }

    @Override
    public long evictBlocksToFreeSpace(Option<BlockId> block, long space, MemoryMode mode) {
      evicted += space;
      all.releaseStorageMemory(space, mode);
      return space;
    }
  }

  private void cache(long bytes) {
    all.setMemoryStore(store);
    assertTrue(all.acquireStorageMemory(new RDDBlockId(0, 0), bytes, MemoryMode.ON_HEAP));
  }

  private File name() {
    return directory.resolve("file" + names++).toFile();
  }

  /** Writes rows of that many bytes in all, and returns the bytes that each partition has in the file. */
  private long[] write(PartitionBuffers buffers, long bytes) throws IOException {
    byte[] row = new byte[ROW_BYTES];
    for (int i = 0; i < bytes / ROW_BYTES; i++) {
      buffers.add(i % PARTITIONS, row, Platform.BYTE_ARRAY_OFFSET, ROW_BYTES);
    }
    try (PartitionFile out = new PartitionFile(name(), context, null)) {
      buffers.writeTo(out);
      return out.lengths;
    }
  }

  private long peakOfFew(long bytes) throws IOException {
    try (PartitionFiles files = new PartitionFiles(this::name, context);
        BlockCompressor none = BlockCompressor.open(RowCodec.NONE, 1, BLOCK_BYTES);
        PartitionBuffers buffers = new PartitionBuffers(memory, PARTITIONS, BLOCK_BYTES, PARTITIONS * BLOCK_BYTES, none,
            files, new SpareMemory(all, memory))) {
      long[] lengths = write(buffers, bytes);
      assertEquals(bytes / ROW_BYTES * (ROW_BYTES + 4), Arrays.stream(lengths).sum());
      assertEquals(0, memory.getMemoryConsumptionForThisTask());
      return buffers.peakBytes();
    }
  }

  /** What the same rows cost a writer that spills, which Spark lets evict: otherwise the others say nothing. */
  @Test
  void aWriterThatSpillsEvicts() throws IOException {
    cache(ALL_BYTES - 20 * MIB);
    try (Spills spills = new Spills(this::name, context);
        BlockCompressor none = BlockCompressor.open(RowCodec.NONE, 1, BLOCK_BYTES);
        PartitionBuffers buffers = new PartitionBuffers(
            memory, PARTITIONS, BLOCK_BYTES, PARTITIONS * BLOCK_BYTES, SpillLimits.NONE, none, spills)) {
      write(buffers, 64 * MIB);
    }
    assertTrue(store.evicted > 0);
  }

  @Test
  void fewPartitionsEvictNothing() throws IOException {
    for (long free : new long[] {0, MIB, 8 * MIB, 12 * MIB, 100 * MIB}) {
      cache(ALL_BYTES - free);
      long peak = peakOfFew(64 * MIB);
      assertEquals(0, store.evicted, "bytes evicted with " + free + " free");
      assertTrue(peak <= Math.max(0, free - SpareMemory.MAX_BYTES), peak + " bytes of " + free);
      assertTrue(peak <= SpareMemory.MAX_BYTES, peak + " bytes");
      all.releaseStorageMemory(ALL_BYTES - free, MemoryMode.ON_HEAP);
    }
  }

  /** A short output is in memory alone if there is some. */
  @Test
  void whatIsSpareIsUsed() throws IOException {
    cache(100 * MIB);
    long peak = peakOfFew(6 * MIB);
    assertTrue(peak > 5 * MIB, peak + " bytes");
    assertEquals(1, names, "files");
  }

  /** An operator of the task holds its share: it is not asked to spill, which it is for memory beyond the share. */
  @Test
  void noOperatorIsAskedToSpill() throws IOException {
    int[] asked = new int[1];
    MemoryConsumer operator = new MemoryConsumer(memory, MemoryMode.ON_HEAP) {
      @Override
      public long spill(long size, MemoryConsumer trigger) {
        asked[0]++;
        return 0;
      }
    };
    operator.acquireMemory(ALL_BYTES);
    long[] peak = new long[1];
    try (PartitionFiles files = new PartitionFiles(this::name, context);
        BlockCompressor none = BlockCompressor.open(RowCodec.NONE, 1, BLOCK_BYTES);
        PartitionBuffers buffers = new PartitionBuffers(memory, PARTITIONS, BLOCK_BYTES, PARTITIONS * BLOCK_BYTES, none,
            files, new SpareMemory(all, memory))) {
      write(buffers, 8 * MIB);
      peak[0] = buffers.peakBytes();
    }
    assertEquals(0, peak[0]);
    assertEquals(0, asked[0]);
    operator.freeMemory(operator.getUsed());
  }

  /** The operator above the writer needs memory: the blocks go to the partitions' files. */
  @Test
  void blocksGiveWayToAnOperator() throws IOException {
    MemoryConsumer operator = new MemoryConsumer(memory, MemoryMode.ON_HEAP) {
      @Override
      public long spill(long size, MemoryConsumer trigger) {
        return 0;
      }
    };
    byte[] row = new byte[ROW_BYTES];
    try (PartitionFiles files = new PartitionFiles(this::name, context);
        BlockCompressor none = BlockCompressor.open(RowCodec.NONE, 1, BLOCK_BYTES);
        PartitionBuffers buffers = new PartitionBuffers(memory, PARTITIONS, BLOCK_BYTES, PARTITIONS * BLOCK_BYTES, none,
            files, new SpareMemory(all, memory))) {
      for (int i = 0; i < 6 * MIB / ROW_BYTES; i++) {
        buffers.add(i % PARTITIONS, row, Platform.BYTE_ARRAY_OFFSET, ROW_BYTES);
      }
      assertTrue(memory.getMemoryConsumptionForThisTask() > 4 * MIB);
      assertEquals(ALL_BYTES, operator.acquireMemory(ALL_BYTES));
      assertEquals(0, buffers.getUsed());
      operator.freeMemory(operator.getUsed());
      assertEquals(2 * (6 * MIB / ROW_BYTES) * (ROW_BYTES + 4), Arrays.stream(write(buffers, 6 * MIB)).sum());
    }
    assertEquals(0, memory.getMemoryConsumptionForThisTask());
  }
}
