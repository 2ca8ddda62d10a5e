package io.faro.spark.read;

import io.faro.rows.RowReader;
import java.util.Arrays;

/**
 * The pieces of a row that is longer than a batch, joined in one array of the heap, where the rows of Spark's own
 * reader are. The array is used again for the next such row.
 */
final class LongRow {
  /**
   * Rows up to this have memory at once. Of a longer one a sixteenth has to arrive first: its length may be wrong,
   * since without compression nothing has checked it yet.
   */
  private static final int TRUSTED_BYTES = 64 << 20;

  private byte[] bytes = new byte[0];
  private int length;
  private int arrived;

  /** Forgets the row before; the reader has brought the first piece of another one. */
  void begin(RowReader reader) {
    length = reader.longRowBytes();
    arrived = 0;
    if (bytes.length < length) {
      // The old array is free before there is a new one.
      bytes = null;
      bytes = new byte[length <= TRUSTED_BYTES ? length : length / 16];
    }
    add(reader);
  }

  /** Takes the piece that the reader has brought. */
  void add(RowReader reader) {
    int more = reader.bytes();
    if (reader.pieceOffset() != arrived || reader.longRowBytes() != length) {
      throw new IllegalStateException("a piece at byte " + reader.pieceOffset() + " of a row of "
          + reader.longRowBytes() + " bytes, expected: at " + arrived + " of " + length);
    }
    if (bytes.length - arrived < more) {
      bytes = Arrays.copyOf(bytes, length);
    }
    System.arraycopy(reader.batch(), 0, bytes, arrived, more);
    arrived += more;
  }

  boolean isWhole() {
    return arrived == length;
  }

  byte[] bytes() {
    return bytes;
  }

  int length() {
    return length;
  }
}
