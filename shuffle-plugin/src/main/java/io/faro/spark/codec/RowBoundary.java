package io.faro.spark.codec;

/**
 * Follows a row stream through blocks that are not cut at rows: whether it is between two rows. Streams of other
 * serializers go through it too; they have no row blocks, so it may give up on them.
 */
final class RowBoundary {
  /** Bytes of the current row that are still to come. */
  private long left;
  /** Number of bytes of the next row's length that have come, and their value. */
  private int lengthBytes;
  private int length;
  private boolean rows = true;

  boolean isBetweenRows() {
    return rows && left == 0 && lengthBytes == 0;
  }

  void pass(byte[] bytes, int count) {
    int at = 0;
    while (rows && at < count) {
      if (left > 0) {
        int now = (int) Math.min(left, count - at);
        left -= now;
        at += now;
        continue;
      }
      length = length << 8 | bytes[at++] & 0xff;
      if (++lengthBytes == Integer.BYTES) {
        rows = length >= 0 && length % Long.BYTES == 0;
        left = length;
        lengthBytes = 0;
        length = 0;
      }
    }
  }
}
