package io.faro.spark.write;

import io.faro.rows.BlockCompressor;
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
 * when it is full. Buffers and blocks are pages of the task's memory in Spark's account. Where Spark has no page left,
 * or another consumer of the task needs memory, everything goes to a spill, and {@link #writeTo} joins the spills and
 * what is in memory. For the task's thread.
 */
final class PartitionBuffers extends MemoryConsumer implements Closeable {
  private static final boolean BIG_ENDIAN = ByteOrder.nativeOrder() == ByteOrder.BIG_ENDIAN;
  private static final int LENGTH_BYTES = 4;
  private static final int SHORT_ROW_BYTES = 128;
  /** Pages have the size that is asked for, if they are not smaller than this. */
  private static final int MIN_PAGE_BYTES = 4 << 10;
  /** First size of all buffers together: little, because a new page is filled with zeros. */
  private static final int FIRST_BYTES = 256 << 10;
  /** Minimum size of one buffer. */
  static final int MIN_ROOM = 64;
  /** A row block has whole rows: a row of at most this part of a buffer is not split, and blocks keep their length. */
  private static final int SHORT_OF_BUFFER = 4;
  /** Full buffers become larger by this factor, up to the size of a block. */
  private static final int GROWTH = 4;
  /**
   * A page for blocks. G1 begins a concurrent cycle for arrays of half a region and more, which is 512 KiB in heaps
   * below 4 GiB: with pages of 1 MiB and more, collecting took a tenth of a job's CPU.
   */
  private static final int CHUNK_PAGE_BYTES = 256 << 10;
  /** Spark gives a task at most 8,192 pages, so pages become larger than that where there are many. */
  private static final int CHUNK_PAGES = 1024;

  private final Thread owner = Thread.currentThread();
  private final int partitions;
  private final BlockCompressor compressor;
  private final Spills spills;
  private final Chunks chunks;
  private final SpillLimits limits;
  /** Maximum size of a buffer, and the maximum compressed size of a block that is as large. */
  private final int maxRoom;
  private final int maxChunk;
  /** A block on its way to a file. */
  private final long[] block;
  /** The bytes in each partition's buffer. */
  private final int[] filled;
  /** The bytes that row blocks have saved in each partition, against the codec alone. */
  private final long[] saved;
  /** The partitions whose buffers begin inside a row, the rest of which was in the block before. */
  private final BitSet insideRow = new BitSet();
  /** Limit of all buffers together. */
  private final BufferLimit limit;
  /** Memory of all buffers; {@code null}: they have no memory now. */
  private MemoryBlock page;
  private Object base;
  private long start;
  /** Size of one buffer, in bytes; 0 without a page. */
  private int room;
  private long peak;
  private long rowBytes;
  private long rowsInMemory;
  private long bytesInMemory;

  /** {@code maxBytes}: what the buffers take at most; {@code blockBytes}: what a block holds, a multiple of 8. */
  PartitionBuffers(TaskMemoryManager memory, int partitions, int blockBytes, long maxBytes, SpillLimits limits,
      BlockCompressor compressor, Spills spills) {
    super(memory, MIN_PAGE_BYTES, memory.getTungstenMemoryMode());
    this.partitions = partitions;
    this.compressor = compressor;
    this.spills = spills;
    this.limits = limits;
    this.maxRoom = blockBytes;
    limit = new BufferLimit(maxBytes);
    maxChunk = compressor.maxBytes(maxRoom);
    block = new long[(maxChunk + Long.BYTES - 1) / Long.BYTES];
    filled = new int[partitions];
    saved = new long[partitions];
    chunks = new Chunks(partitions);
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

  private int maxRoom() {
    long each = limit.bytes(rowBytes) / partitions / Long.BYTES * Long.BYTES;
    return (int) Math.max(MIN_ROOM, Math.min(maxRoom, each));
  }

  /** Gives the buffers their smallest size. */
  private void open() {
    int first = Math.max(MIN_ROOM, Math.min(maxRoom, FIRST_BYTES / partitions / Long.BYTES * Long.BYTES));
    setPage(allocatePage((long) first * partitions), first);
  }

  private void setPage(MemoryBlock of, int roomOfEach) {
    page = of;
    base = of.getBaseObject();
    start = of.getBaseOffset();
    room = roomOfEach;
    peak = Math.max(peak, getUsed());
  }

  /**
   * Moves all rows into larger buffers. False: they have their full size, or there is no memory for it. Another
   * consumer that is asked for memory may need some itself: then this one has spilled everything before the page is
   * there.
   */
  private boolean grow() {
    int larger = (int) Math.min(maxRoom(), (long) GROWTH * room);
    if (larger <= room) {
      return false;
    }
    long now = (long) room * partitions;
    long wanted = (long) larger * partitions;
    MemoryBlock next = pageOrNull(wanted);
    if (next == null || page == null) {
      limit.refused(wanted, now, rowBytes);
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
    freePage(last);
    return true;
  }

  /** A page, for which blocks may have been spilled; {@code null}: Spark has none for this task. */
  private MemoryBlock pageOrNull(long bytes) {
    try {
      return allocatePage(bytes);
    } catch (SparkOutOfMemoryError e) {
      return null;
    }
  }

  /**
   * Adds a row that does not fit into what is left of the buffer, in pieces: so blocks are cut where Spark's writers
   * cut them. All lengths are multiples of 4, so the row's length is one piece.
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
    int length;
    int savedNow;
    if (chunks.fits(maxChunk)) {
      length = compress(partition, (long[]) chunks.base(), position(chunks.base(), chunks.offset()));
      savedNow = compressor.codecBytes() - length;
    } else {
      // Most blocks are much shorter than the longest, so this one may fit into the rest of the page.
      length = compress(partition, block, 0);
      savedNow = compressor.codecBytes() - length;
      if (!chunks.fits(length) && !addChunkPage()) {
        return;
      }
      Platform.copyMemory(block, Platform.LONG_ARRAY_OFFSET, chunks.base(), chunks.offset(), length);
    }
    chunks.add(partition, length);
    saved[partition] += savedNow;
    empty(partition);
  }

  private void empty(int partition) {
    filled[partition] = 0;
    insideRow.clear(partition);
  }

  /** A block of what a partition's buffer has; returns its bytes. */
  private int compress(int partition, long[] target, long position) {
    long[] from = (long[]) base;
    long at = position(base, start + (long) partition * room);
    // Bytes from the inside of a row could look like whole rows.
    return insideRow.get(partition)
        ? compressor.compress(from, at, filled[partition], target, position, maxChunk)
        : compressor.compressRows(from, at, filled[partition], target, position, maxChunk);
  }

  /** Adds a page for blocks. False: everything was spilled, because there is no memory or meanwhile. */
  private boolean addChunkPage() throws IOException {
    boolean none = chunks.isEmpty();
    long now = (long) room * partitions;
    long wanted = Math.max(CHUNK_PAGE_BYTES, chunks.bytes() / CHUNK_PAGES);
    MemoryBlock next = pageOrNull(Math.max(wanted, maxChunk));
    if (next == null) {
      if (none) {
        // The buffers leave no memory for blocks: smaller ones for a while.
        limit.refused(now, now / 2, rowBytes);
      }
      spillAll();
      return false;
    }
    if (page == null) {
      // Spilled meanwhile, as in grow().
      freePage(next);
      return false;
    }
    chunks.addPage(next);
    peak = Math.max(peak, getUsed());
    return true;
  }

  /** Spark counts an array's bytes from the object's address on. */
  private static long position(Object array, long offset) {
    return array == null ? offset : offset - Platform.LONG_ARRAY_OFFSET;
  }

  /** Writes all rows that were added, and frees all memory. */
  void writeTo(PartitionFile out) throws IOException {
    try (Spills.Open from = spills.open()) {
      for (int i = 0; i < partitions; i++) {
        from.transfer(i, out);
        append(i, out);
      }
    }
    out.end();
    free();
  }

  /** Appends the rows of a partition that are in memory. */
  private void append(int partition, PartitionFile out) throws IOException {
    chunks.visit(partition, (from, offset, length) -> out.append(partition, from, offset, length));
    int rest = filled[partition];
    if (rest > 0) {
      int length = compress(partition, block, 0);
      out.append(partition, block, Platform.LONG_ARRAY_OFFSET, length);
      saved[partition] += compressor.codecBytes() - length;
      empty(partition);
    }
    if (rest > 0 || chunks.has(partition)) {
      out.append(partition, compressor.end());
    }
  }

  /**
   * Spark needs memory. For another consumer of the task everything goes to a spill; for a page of this one's the
   * blocks, because the buffers are in use. Nothing for a request on another thread, as that of a Python worker's feed.
   */
  @Override
  public long spill(long size, MemoryConsumer trigger) throws IOException {
    if (Thread.currentThread() != owner) {
      return 0;
    }
    if (trigger != this) {
      return spillAll();
    }
    if (chunks.isEmpty()) {
      return 0;
    }
    spills.write(file -> {
      for (int i = 0; i < partitions; i++) {
        if (chunks.has(i)) {
          int partition = i;
          chunks.visit(i, (from, offset, length) -> file.append(partition, from, offset, length));
          file.append(partition, compressor.end());
        }
      }
    });
    long freed = freeChunks();
    spills.freed(freed);
    return freed;
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
        append(i, file);
      }
    });
    long freed = free();
    spills.freed(freed);
    return freed;
  }

  private long free() {
    long freed = freeChunks();
    if (page != null) {
      freed += page.size();
      freePage(page);
      page = null;
      base = null;
      room = 0;
      Arrays.fill(filled, 0);
      insideRow.clear();
    }
    return freed;
  }

  private long freeChunks() {
    List<MemoryBlock> pages = chunks.clear();
    long freed = 0;
    for (MemoryBlock each : pages) {
      freed += each.size();
      freePage(each);
    }
    return freed;
  }

  /**
   * About the bytes of a partition that the codec alone would have written, where it has {@code written} bytes with row
   * blocks: at least as many, and 0 for 0.
   */
  long codecBytes(int partition, long written) {
    return written + saved[partition];
  }

  /** Bytes of all rows, without their lengths. */
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
