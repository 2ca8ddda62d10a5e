package io.faro.sort;

/**
 * The JNI boundary of sorts, one method for each symbol of native/jni/src/sort.rs. Handles are checked numbers; a stale
 * one throws {@link IllegalStateException}. One thread at a time may call with the same handle. A position is a byte
 * offset in an array, or an address if the array is {@code null}; sizes are bytes.
 */
final class SortNative {
  private SortNative() {}

  /**
   * Opens a sorter and returns its handle. {@code columns}: for each column its ordinal, the code of its {@link
   * KeyKind}, 1 for descending, 1 for nulls last.
   */
  static native long open(int[] columns, int fields, boolean complete);

  static native void close(long sorter);

  /** Looks at the rows of the next page, and returns their number. */
  static native long survey(long sorter, long[] page, long from, long bytes);

  /**
   * Ends the survey. Returns a byte each, from the lowest on: an entry's words, the bits of a word's number in its
   * page, the bits of a page's number, 1 if keys are exact.
   */
  static native int plan(long sorter);

  /** Writes the entries of the next page's rows behind those of the pages before. */
  static native void encode(
      long sorter, long[] page, long from, long bytes, long[] entries, long to, long room);

  /**
   * {@code secondRoom} is 0 where the entries are sorted in their place. Returns 0 if there is more to do, 1 if the
   * entries are in the first array, 2 if they are in the second.
   */
  static native int step(
      long sorter, long[] first, long firstAt, long room, long[] second, long secondAt, long secondRoom, int budget);
}
