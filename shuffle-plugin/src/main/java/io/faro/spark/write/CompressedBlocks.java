package io.faro.spark.write;

import io.faro.rows.BlockCompressor;
import java.io.IOException;
import java.util.List;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.memory.MemoryBlock;

/**
 * The compressed blocks of one map output that are in memory. A block is made of what a partition's buffer has. The
 * pages come from the caller, and go back to it.
 */
final class CompressedBlocks {
  /**
   * A page for blocks. G1 begins a concurrent cycle for arrays of half a region and more, which is 512 KiB in heaps
   * below 4 GiB: with pages of 1 MiB and more, collecting took a tenth of a job's CPU.
   */
  private static final int PAGE_BYTES = 256 << 10;
  /** Spark gives a task at most 8,192 pages, so pages become larger than that where there are many. */
  private static final int PAGES = 1024;

  private final BlockCompressor compressor;
  private final Chunks chunks;
  /** Maximum compressed size of a block. */
  private final int maxLength;
  /** A block on its way to a page or a file. */
  private final long[] block;
  /** Bytes of the block in {@code block} that waits for a page. */
  private int waiting;
  /** The bytes that row blocks have saved in each partition, against the codec alone. */
  private final long[] saved;

  /** {@code blockBytes}: what a block holds. */
  CompressedBlocks(int partitions, int blockBytes, BlockCompressor compressor) {
    this.compressor = compressor;
    maxLength = compressor.maxBytes(blockBytes);
    block = new long[(maxLength + Long.BYTES - 1) / Long.BYTES];
    saved = new long[partitions];
    chunks = new Chunks(partitions);
  }

  /**
   * Makes a block of {@code bytes} bytes of a partition's buffer, of which {@code insideRow} says that it begins inside
   * a row. False: there is no room for the block, which waits for {@link #addInPage}.
   */
  boolean add(int partition, Object from, long offset, int bytes, boolean insideRow) {
    if (chunks.fits(maxLength)) {
      Object page = chunks.base();
      keep(partition, compress(from, offset, bytes, insideRow, (long[]) page, position(page, chunks.offset())));
      return true;
    }
    // Most blocks are much shorter than the longest, so this one may fit into the rest of the page.
    waiting = compress(from, offset, bytes, insideRow, block, 0);
    if (!chunks.fits(waiting)) {
      return false;
    }
    addWaiting(partition);
    return true;
  }

  /** Puts the block that waits into a new page, of at least {@link #pageBytes} bytes. No other was made meanwhile. */
  void addInPage(MemoryBlock page, int partition) {
    chunks.addPage(page);
    addWaiting(partition);
  }

  private void addWaiting(int partition) {
    Platform.copyMemory(block, Platform.LONG_ARRAY_OFFSET, chunks.base(), chunks.offset(), waiting);
    keep(partition, waiting);
  }

  private void keep(int partition, int length) {
    chunks.add(partition, length);
    saved[partition] += compressor.codecBytes() - length;
  }

  private int compress(Object from, long offset, int bytes, boolean insideRow, long[] target, long to) {
    long[] array = (long[]) from;
    long at = position(from, offset);
    // Bytes from the inside of a row could look like whole rows.
    return insideRow
        ? compressor.compress(array, at, bytes, target, to, maxLength)
        : compressor.compressRows(array, at, bytes, target, to, maxLength);
  }

  /** Spark counts an array's bytes from the object's address on. */
  private static long position(Object array, long offset) {
    return array == null ? offset : offset - Platform.LONG_ARRAY_OFFSET;
  }

  /** Bytes that the next page should have. */
  long pageBytes() {
    return Math.max(Math.max(PAGE_BYTES, chunks.bytes() / PAGES), maxLength);
  }

  /** Writes the block that waits, which is a partition's next one, to its file. */
  void appendWaiting(int partition, PartitionFiles to) throws IOException {
    to.append(partition, block, Platform.LONG_ARRAY_OFFSET, waiting);
    to.flush(partition);
    saved[partition] += compressor.codecBytes() - waiting;
  }

  /**
   * Appends the blocks of a partition, and one of the {@code bytes} bytes that its buffer has, if any. {@code began}:
   * the file has blocks of it already, without their end.
   */
  void append(int partition, Object from, long offset, int bytes, boolean insideRow, boolean began, PartitionFile out)
      throws IOException {
    appendBlocks(partition, out);
    if (bytes > 0) {
      int length = compress(from, offset, bytes, insideRow, block, 0);
      out.append(partition, block, Platform.LONG_ARRAY_OFFSET, length);
      saved[partition] += compressor.codecBytes() - length;
    }
    if (began || bytes > 0 || chunks.has(partition)) {
      out.append(partition, compressor.end());
    }
  }

  /** Appends the blocks of a partition alone. */
  void append(int partition, PartitionFile out) throws IOException {
    if (chunks.has(partition)) {
      appendBlocks(partition, out);
      out.append(partition, compressor.end());
    }
  }

  private void appendBlocks(int partition, PartitionFile out) throws IOException {
    chunks.visit(partition, (page, offset, length) -> out.append(partition, page, offset, length));
  }

  /** Moves all blocks to the partitions' files. The pages are kept for the next ones. */
  void moveTo(PartitionFiles files) throws IOException {
    for (int i = 0; i < saved.length; i++) {
      int partition = i;
      chunks.visit(i, (page, offset, length) -> files.append(partition, page, offset, length));
      files.flush(i);
    }
    chunks.rewind();
  }

  boolean isEmpty() {
    return chunks.isEmpty();
  }

  /** Forgets all blocks. The caller frees the pages. */
  List<MemoryBlock> clear() {
    return chunks.clear();
  }

  /** The bytes that row blocks have saved in a partition so far, against the codec alone. */
  long saved(int partition) {
    return saved[partition];
  }
}
