package io.faro.spark.sort;

import io.faro.sort.EntryShape;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.array.LongArray;
import org.apache.spark.unsafe.memory.MemoryBlock;

/**
 * Goes through pages in the order of sorted entries. Rows are all over the memory: the lengths of some are read at a
 * time, so that the processor waits for them together.
 */
final class EntryCursor extends RowCursor {
  static final int AHEAD = 32;

  private final PagedRows rows;
  private final LongArray entries;
  private final EntryShape shape;
  private final long count;
  /** The next entry to look at. */
  private long entry;
  private final MemoryBlock[] pages = new MemoryBlock[AHEAD];
  private final long[] offsets = new long[AHEAD];
  private final int[] lengths = new int[AHEAD];
  private int at;
  private int filled;

  EntryCursor(PagedRows rows, LongArray entries, EntryShape shape) {
    this(rows, entries, shape, 0);
  }

  private EntryCursor(PagedRows rows, LongArray entries, EntryShape shape, long entry) {
    super(false);
    this.rows = rows;
    this.entries = entries;
    this.shape = shape;
    this.entry = entry;
    count = entries.size() / shape.words;
  }

  @Override
  void next() {
    if (at == filled) {
      fill();
    }
    page = pages[at];
    base = page.getBaseObject();
    offset = offsets[at];
    bytes = lengths[at++];
  }

  private void fill() {
    rows.checkInterrupt();
    filled = (int) Math.min(AHEAD, count - entry);
    at = 0;
    for (int i = 0; i < filled; i++) {
      long last = entries.get((int) (entry + i + 1) * shape.words - 1);
      pages[i] = rows.page(shape.page(last));
      offsets[i] = pages[i].getBaseOffset() + shape.offset(last);
    }
    for (int i = 0; i < filled; i++) {
      lengths[i] = (int) Platform.getLong(pages[i].getBaseObject(), offsets[i]);
    }
    entry += filled;
  }

  @Override
  RowCursor copy() {
    return new EntryCursor(rows, entries, shape, entry - (filled - at));
  }
}
