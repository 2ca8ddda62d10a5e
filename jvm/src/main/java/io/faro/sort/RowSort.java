package io.faro.sort;

/**
 * One sort of rows that lie in pages of memory, which are arrays or memory outside the heap. In a page each row has 8
 * bytes with its length as a long, then its own bytes, an {@code UnsafeRow}. All pages are surveyed, then encoded in
 * the same order, then sorted. The result is an array of <i>entries</i>, one for each row ({@link EntryShape}). Rows
 * with equal keys keep their order. For one thread at a time.
 */
public final class RowSort implements AutoCloseable {
  /** Bytes before each row in a page. */
  public static final int ROW_HEAD_BYTES = 8;
  /** Bytes that entries take at most for each row, in one array or in two. */
  public static final int MAX_ROW_BYTES = 16;
  /** Entries that a call moves: garbage collection waits for it, some milliseconds. */
  private static final int STEP = 1 << 20;

  private final long handle;
  private boolean closed;

  private RowSort(long handle) {
    this.handle = handle;
  }

  /**
   * Opens a sort; {@link #close} frees its native memory, which is a few KiB. Rows have {@code fields} columns. {@code
   * complete}: rows with equal values in the columns of {@code key} are equal.
   */
  public static RowSort open(SortKey key, int fields, boolean complete) {
    return new RowSort(SortNative.open(key.columns(), fields, complete));
  }

  /** Looks at the rows of a page, {@code bytes} bytes at {@code from}, and returns their number. */
  public long survey(long[] page, long from, long bytes) {
    return SortNative.survey(handle, page, from, bytes);
  }

  /** Ends the survey. Entries of this shape come next. */
  public EntryShape plan() {
    return new EntryShape(SortNative.plan(handle));
  }

  /** Writes the entries of a page's rows behind those before, into {@code room} bytes at {@code to}. */
  public void encode(long[] page, long from, long bytes, long[] entries, long to, long room) {
    SortNative.encode(handle, page, from, bytes, entries, to, room);
  }

  /**
   * Sorts entries of one long, which are in the first of two arrays that have room for all. Returns {@code true} if
   * they are in the second one then. {@code beforeStep} runs every few milliseconds; what it throws ends the sort.
   */
  public boolean sort(
      long[] first, long firstAt, long[] second, long secondAt, long room, Runnable beforeStep) {
    return steps(first, firstAt, room, second, secondAt, room, beforeStep) == 2;
  }

  /** Sorts entries of two longs in their place. */
  public void sortInPlace(long[] entries, long at, long room, Runnable beforeStep) {
    steps(entries, at, room, null, 0, 0, beforeStep);
  }

  private int steps(long[] first, long firstAt, long room, long[] second, long secondAt, long secondRoom,
      Runnable beforeStep) {
    int step;
    do {
      beforeStep.run();
      step = SortNative.step(handle, first, firstAt, room, second, secondAt, secondRoom, STEP);
    } while (step == 0);
    return step;
  }

  @Override
  public void close() {
    if (!closed) {
      closed = true;
      SortNative.close(handle);
    }
  }
}
