package io.faro.spark.write;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.unsafe.memory.MemoryBlock;

/**
 * Compressed blocks in pages of Spark's, a list of them for each partition. Without an object for a block: a block is a
 * number, and its fields are in arrays.
 */
final class Chunks {
  private static final int NONE = -1;

  /** Gets the blocks of a partition, in the order in which they were added. */
  interface Visitor<E extends Exception> {
    void chunk(Object base, long offset, int length) throws E;
  }

  private final List<MemoryBlock> pages = new ArrayList<>();
  private final int[] firsts;
  private final int[] lasts;
  /** For each block: page, offset in it, bytes, and the partition's next block. */
  private int[] pageOf = new int[64];
  private int[] offsets = new int[64];
  private int[] lengths = new int[64];
  private int[] nexts = new int[64];
  private int count;
  private long bytes;
  /** The page that is being filled; those after it are empty. */
  private int current;
  /** Bytes of the current page that are used. */
  private int used;

  Chunks(int partitions) {
    firsts = new int[partitions];
    lasts = new int[partitions];
    Arrays.fill(firsts, NONE);
  }

  long bytes() {
    return bytes;
  }

  boolean isEmpty() {
    return count == 0;
  }

  boolean has(int partition) {
    return firsts[partition] != NONE;
  }

  boolean fits(int length) {
    if (pages.isEmpty()) {
      return false;
    } else if (pages.get(current).size() - used >= length) {
      return true;
    } else if (current + 1 == pages.size() || pages.get(current + 1).size() < length) {
      return false;
    }
    current++;
    used = 0;
    return true;
  }

  void addPage(MemoryBlock page) {
    pages.add(page);
    current = pages.size() - 1;
    used = 0;
  }

  /** Returns where the next block goes: {@code null} is the base of memory outside the heap. */
  Object base() {
    return pages.get(current).getBaseObject();
  }

  long offset() {
    return pages.get(current).getBaseOffset() + used;
  }

  /** Adds the {@code length} bytes that the caller wrote at {@link #offset} as a block of that partition. */
  void add(int partition, int length) {
    if (count == pageOf.length) {
      pageOf = Arrays.copyOf(pageOf, 2 * count);
      offsets = Arrays.copyOf(offsets, 2 * count);
      lengths = Arrays.copyOf(lengths, 2 * count);
      nexts = Arrays.copyOf(nexts, 2 * count);
    }
    pageOf[count] = current;
    offsets[count] = used;
    lengths[count] = length;
    nexts[count] = NONE;
    if (firsts[partition] == NONE) {
      firsts[partition] = count;
    } else {
      nexts[lasts[partition]] = count;
    }
    lasts[partition] = count;
    count++;
    used += length;
    bytes += length;
  }

  <E extends Exception> void visit(int partition, Visitor<E> visitor) throws E {
    for (int i = firsts[partition]; i != NONE; i = nexts[i]) {
      MemoryBlock page = pages.get(pageOf[i]);
      visitor.chunk(page.getBaseObject(), page.getBaseOffset() + offsets[i], lengths[i]);
    }
  }

  /** Forgets all blocks. The caller frees the pages. */
  List<MemoryBlock> clear() {
    List<MemoryBlock> freed = new ArrayList<>(pages);
    pages.clear();
    rewind();
    return freed;
  }

  /** Forgets all blocks and keeps the pages for the next ones. */
  void rewind() {
    Arrays.fill(firsts, NONE);
    count = 0;
    bytes = 0;
    current = 0;
    used = 0;
  }
}
