package io.faro.spark.write;

import io.faro.Nullable;
import io.faro.rows.BlockCompressor;
import io.faro.spark.conf.SpillLimits;
import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import org.apache.spark.memory.MemoryConsumer;
import org.apache.spark.memory.SparkOutOfMemoryError;
import org.apache.spark.memory.TaskMemoryManager;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.memory.MemoryBlock;

/**
 * The rows of one map output while it is written: a buffer for each partition, whose bytes become a compressed block
 * ({@link CompressedBlocks}) when it is full. Buffers and blocks are pages of the task's memory in Spark's account.
 * Where Spark has no page left, or another consumer of the task needs memory, everything goes to a spill, and
 * {@link #writeTo} joins the spills and what is in memory. Where Spark's own writer would take no execution memory,
 * because there are few partitions, this one takes none from others: the buffers are arrays, as that writer's, blocks
 * are in {@link SpareMemory}, and where there is none they go to {@link PartitionFiles}. For the task's thread. What
 * each row uses is in fields of this class, because an object in between would cost each row an access.
 */
final class PartitionBuffers extends MemoryConsumer implements Closeable {
  private static final boolean BIG_ENDIAN = ByteOrder.nativeOrder() == ByteOrder.BIG_ENDIAN;
  private static final int LENGTH_BYTES = 4;
  private static final int SHORT_ROW_BYTES = 128;
  /** Pages have the size that is asked for, if they are not smaller than this. */
  private static final int MIN_PAGE_BYTES = 4 << 10;
  /** A row block has whole rows: a row of at most this part of a buffer is not split, and blocks keep their length. */
  private static final int SHORT_OF_BUFFER = 4;

  private final Thread owner = Thread.currentThread();
  private final int partitions;
  private final BlockCompressor compressor;
  /** Null if {@code files} takes what has no memory. */
  @Nullable private final Spills spills;
  /** Null if {@code spills} takes it. */
  @Nullable private final PartitionFiles files;
  private final SpareMemory spare;
  private final SpillLimits limits;
  private final BufferSizes sizes;
  private final CompressedBlocks blocks;
  private final int[] filled;
  /** The partitions whose buffers begin inside a row, the rest of which was in the block before. */
  private final BitSet insideRow = new BitSet();
  /** The memory of all buffers; null if they have none now. */
  @Nullable private MemoryBlock page;
  private Object base;
  private long start;
  /** Size of one buffer, in bytes; 0 without a page. */
  private int room;
  private long peak;
  private long rowBytes;
  private long rowsInMemory;
  private long bytesInMemory;

  /**
   * The buffers take at most {@code maxBytes} bytes, and a block holds {@code blockBytes}, a multiple of 8. They take
   * no memory before the first row.
   */
  PartitionBuffers(TaskMemoryManager memory, int partitions, int blockBytes, long maxBytes, SpillLimits limits,
      BlockCompressor compressor, Spills spills) {
    this(memory, partitions, blockBytes, maxBytes, limits, compressor, spills, null, null);
  }

  /** The same for few partitions: without execution memory that is not spare. */
  PartitionBuffers(TaskMemoryManager memory, int partitions, int blockBytes, long maxBytes, BlockCompressor compressor,
      PartitionFiles files, SpareMemory spare) {
    this(memory, partitions, blockBytes, maxBytes, SpillLimits.NONE, compressor, null, files, spare);
  }

  private PartitionBuffers(TaskMemoryManager memory, int partitions, int blockBytes, long maxBytes,
      SpillLimits limits, BlockCompressor compressor, Spills spills, PartitionFiles files, SpareMemory spare) {
    super(memory, MIN_PAGE_BYTES, memory.getTungstenMemoryMode());
    this.partitions = partitions;
    this.compressor = compressor;
    this.spills = spills;
    this.files = files;
    this.spare = spare;
    this.limits = limits;
    sizes = new BufferSizes(partitions, blockBytes, maxBytes);
    blocks = new CompressedBlocks(partitions, blockBytes, compressor);
    filled = new int[partitions];
  }

  /**
   * Appends a row.
   *
   * @throws IllegalArgumentException no such partition, or no size of an {@code UnsafeRow}.
   * @throws SparkOutOfMemoryError Spark has no memory for the smallest buffers.
   */
  void add(int partition, Object rowBase, long rowOffset, int size) throws IOException {
    if (partition < 0 || partition >= partitions || size < 0 || size % Long.BYTES != 0) {
      throw new IllegalArgumentException("a row of " + size + " bytes for partition " + partition + " of " + partitions
          + "; a row has a multiple of 8 bytes");
    }
    if (size > room - LENGTH_BYTES - filled[partition] && !makeRoom(partition, size)) {
      addInPieces(partition, rowBase, rowOffset, size);
    } else {
      int at = filled[partition];
      long to = start + (long) partition * room + at;
      Platform.putInt(base, to, BIG_ENDIAN ? size : Integer.reverseBytes(size));
      copyRow(rowBase, rowOffset, base, to + LENGTH_BYTES, size);
      filled[partition] = at + LENGTH_BYTES + size;
    }
    rowBytes += size;
    bytesInMemory += size;
    if (limits.reached(++rowsInMemory, bytesInMemory)) {
      spillAll();
    }
  }

  /** {@code Platform.copyMemory} checks so much that a short row costs more than its bytes. */
  private static void copyRow(Object from, long fromOffset, Object to, long toOffset, int size) {
    if (size > SHORT_ROW_BYTES) {
      Platform.copyMemory(from, fromOffset, to, toOffset, size);
      return;
    }
    for (int i = 0; i < size; i += Long.BYTES) {
      Platform.putLong(to, toOffset + i, Platform.getLong(from, fromOffset + i));
    }
  }

  /**
   * Returns whether the partition's buffer has room for the row, if need be after it became larger, or after its rows
   * became a block so that the next one begins at this row.
   */
  private boolean makeRoom(int partition, int size) throws IOException {
    while (size > room - LENGTH_BYTES - filled[partition]) {
      if (room == 0) {
        open();
      } else if (!grow()) {
        if (!compressor.packsRows() || filled[partition] == 0 || size + LENGTH_BYTES > room / SHORT_OF_BUFFER) {
          return false;
        }
        flush(partition);
      }
    }
    return true;
  }

  /** Gives the buffers their smallest size. */
  private void open() {
    int first = sizes.first();
    long bytes = (long) first * partitions;
    setPage(files == null ? allocatePage(bytes) : array(bytes), first);
  }

  private static MemoryBlock array(long bytes) {
    return MemoryBlock.fromLongArray(new long[(int) (bytes / Long.BYTES)]);
  }

  private void setPage(MemoryBlock of, int roomOfEach) {
    page = of;
    base = of.getBaseObject();
    start = of.getBaseOffset();
    room = roomOfEach;
    peak = Math.max(peak, getUsed());
  }

  /**
   * Moves all rows into larger buffers. Returns false if they have their full size, or if there is no memory for larger
   * ones. Another consumer that is asked for memory may need some itself: then this one has spilled everything before
   * the page is there.
   */
  private boolean grow() {
    int larger = sizes.next(room, rowBytes);
    if (larger <= room) {
      return false;
    }
    long now = (long) room * partitions;
    long wanted = (long) larger * partitions;
    MemoryBlock next = files == null ? pageOrNull(wanted) : array(wanted);
    if (next == null || page == null) {
      sizes.refused(wanted, now, rowBytes);
      if (next != null) {
        freePage(next);
      }
      return page == null;
    }
    for (int i = 0; i < partitions; i++) {
      Platform.copyMemory(base, start + (long) i * room, next.getBaseObject(),
          next.getBaseOffset() + (long) i * larger, filled[i]);
    }
    MemoryBlock last = page;
    setPage(next, larger);
    freeBuffers(last);
    return true;
  }

  /** Returns a page, for which blocks may have been spilled; null if Spark has none for this task. */
  @Nullable private MemoryBlock pageOrNull(long bytes) {
    try {
      return allocatePage(bytes);
    } catch (SparkOutOfMemoryError e) {
      return null;
    }
  }

  /**
   * Adds a row that does not fit into what is left of the buffer, in pieces, so that blocks are cut where Spark's
   * writers cut them. All lengths are multiples of 4, so the row's length is one piece.
   */
  private void addInPieces(int partition, Object rowBase, long rowOffset, int size) throws IOException {
    makeSomeRoom(partition);
    Platform.putInt(base, end(partition), BIG_ENDIAN ? size : Integer.reverseBytes(size));
    filled[partition] += LENGTH_BYTES;
    for (int done = 0; done < size;) {
      makeSomeRoom(partition);
      if (filled[partition] == 0) {
        insideRow.set(partition);
      }
      int now = Math.min(size - done, room - filled[partition]);
      Platform.copyMemory(rowBase, rowOffset + done, base, end(partition), now);
      filled[partition] += now;
      done += now;
    }
  }

  /** Returns where the partition's next byte goes. */
  private long end(int partition) {
    return start + (long) partition * room + filled[partition];
  }

  /** Makes a block of the partition's buffer if it is full. */
  private void makeSomeRoom(int partition) throws IOException {
    if (room > 0 && filled[partition] == room) {
      flush(partition);
    }
    if (room == 0) {
      // A spill took the buffers' page and what was in it.
      open();
    }
  }

  /** Makes a block of what a partition's buffer has; without memory for it, spills everything. */
  private void flush(int partition) throws IOException {
    long from = start + (long) partition * room;
    if (!blocks.add(partition, base, from, filled[partition], insideRow.get(partition))) {
      MemoryBlock next = files == null ? blockPage() : sparePage();
      if (next != null) {
        blocks.addInPage(next, partition);
        peak = Math.max(peak, getUsed());
      } else if (files == null) {
        return;
      } else {
        moveBlocks();
        blocks.appendWaiting(partition, files);
      }
    }
    empty(partition);
  }

  /** Returns a page for blocks that nobody else has to give up; null if there is none. */
  @Nullable private MemoryBlock sparePage() {
    long bytes = blocks.pageBytes();
    return spare.has(bytes, getUsed()) ? pageOrNull(bytes) : null;
  }

  /** Moves the blocks to the partitions' files, and frees their pages if memory has become short meanwhile. */
  private void moveBlocks() throws IOException {
    blocks.moveTo(files);
    if (!spare.isFree(0)) {
      freeBlocks();
    }
  }

  private void empty(int partition) {
    filled[partition] = 0;
    insideRow.clear(partition);
  }

  /** Returns a page for blocks; null if everything was spilled, because there is no memory or meanwhile. */
  @Nullable private MemoryBlock blockPage() throws IOException {
    boolean none = blocks.isEmpty();
    long now = (long) room * partitions;
    MemoryBlock next = pageOrNull(blocks.pageBytes());
    if (next == null) {
      if (none) {
        // The buffers leave no memory for blocks, so they are smaller for a while.
        sizes.refused(now, now / 2, rowBytes);
      }
      spillAll();
      return null;
    }
    if (page == null) {
      // Everything was spilled meanwhile, as in grow().
      freePage(next);
      return null;
    }
    return next;
  }

  /** Writes all rows that were added, and frees all memory. */
  void writeTo(PartitionFile out) throws IOException {
    if (files == null) {
      try (Spills.Open from = spills.open()) {
        for (int i = 0; i < partitions; i++) {
          from.transfer(i, out);
          append(i, false, out);
        }
      }
    } else {
      for (int i = 0; i < partitions; i++) {
        append(i, files.transfer(i, out), out);
      }
    }
    out.end();
    free();
  }

  /** Appends the rows of a partition that are in memory; {@code began}: as {@link CompressedBlocks#append} has it. */
  private void append(int partition, boolean began, PartitionFile out) throws IOException {
    long from = start + (long) partition * room;
    blocks.append(partition, base, from, filled[partition], insideRow.get(partition), began, out);
    empty(partition);
  }

  /**
   * Frees memory because Spark needs some. For another consumer of the task everything goes to a spill; for a page of
   * this one only the blocks do, because the buffers are in use. A request on another thread, such as that of a Python
   * worker's feed, frees nothing.
   */
  @Override
  public long spill(long size, MemoryConsumer trigger) throws IOException {
    if (Thread.currentThread() != owner) {
      return 0;
    }
    if (files != null) {
      // For a page of its own the caller moves them.
      return trigger == this ? 0 : giveBlocks();
    }
    if (trigger != this) {
      return spillAll();
    }
    if (blocks.isEmpty()) {
      return 0;
    }
    spills.write(file -> {
      for (int i = 0; i < partitions; i++) {
        blocks.append(i, file);
      }
    });
    long freed = freeBlocks();
    spills.freed(freed);
    return freed;
  }

  private long giveBlocks() throws IOException {
    blocks.moveTo(files);
    return freeBlocks();
  }

  /** Writes everything to a spill and returns the bytes of memory that this freed. */
  private long spillAll() throws IOException {
    rowsInMemory = 0;
    bytesInMemory = 0;
    if (page == null) {
      return 0;
    }
    spills.write(file -> {
      for (int i = 0; i < partitions; i++) {
        append(i, false, file);
      }
    });
    long freed = free();
    spills.freed(freed);
    return freed;
  }

  private long free() {
    long freed = freeBlocks();
    if (page != null) {
      freed += page.size();
      freeBuffers(page);
      page = null;
      base = null;
      room = 0;
      Arrays.fill(filled, 0);
      insideRow.clear();
    }
    return freed;
  }

  private void freeBuffers(MemoryBlock of) {
    if (files == null) {
      freePage(of);
    }
  }

  private long freeBlocks() {
    List<MemoryBlock> pages = blocks.clear();
    long freed = 0;
    for (MemoryBlock each : pages) {
      freed += each.size();
      freePage(each);
    }
    return freed;
  }

  /**
   * Returns about how many bytes the codec alone would have written for a partition that has {@code written} bytes with
   * row blocks: at least as many, and 0 for 0.
   */
  long codecBytes(int partition, long written) {
    return written + blocks.saved(partition);
  }

  /** Returns the bytes of all rows, without their lengths. */
  long rowBytes() {
    return rowBytes;
  }

  long peakBytes() {
    return peak;
  }

  /** Frees all memory. Idempotent. */
  @Override
  public void close() {
    free();
  }
}
