package io.faro.spark.codec;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Knows where the rows of one block are in its output, the row stream. */
final class Rows {
  private static final int LENGTH_BYTES = Integer.BYTES;

  private int[] starts = new int[0];
  private int[] bytes = new int[0];
  private byte[] out;
  private ByteBuffer words;

  /**
   * Takes the rows' lengths in words, from which each output byte's place follows, and writes them to the first {@code
   * original} bytes of {@code target}.
   */
  void place(Body body, long[] lengths, int original, byte[] target) throws BlockFault {
    if (starts.length < body.rows) {
      starts = new int[body.room(starts.length)];
      bytes = new int[starts.length];
    }
    out = target;
    words = ByteBuffer.wrap(target, 0, original).order(ByteOrder.LITTLE_ENDIAN);
    int at = 0;
    for (int row = 0; row < body.rows; row++) {
      long length = lengths[row];
      long max = (original - LENGTH_BYTES) / Long.BYTES;
      if (length < body.words || length > max) {
        throw new BlockFault("row " + row + " has " + Long.toUnsignedString(length) + " words; at least " + body.words
            + " are packed, and " + max + " fit");
      }
      long end = at + LENGTH_BYTES + Long.BYTES * length;
      if (end > original) {
        throw wrong(end, original);
      }
      bytes[row] = (int) length * Long.BYTES;
      // Big-endian, as DataInputStream reads it.
      words.putInt(at, Integer.reverseBytes(bytes[row]));
      starts[row] = at + LENGTH_BYTES;
      at = starts[row] + bytes[row];
    }
    if (at != original) {
      throw wrong(at, original);
    }
  }

  private static BlockFault wrong(long found, int original) {
    return new BlockFault("its rows have " + found + " bytes or more; its header says " + original);
  }

  int start(int row) {
    return starts[row];
  }

  int bytes(int row) {
    return bytes[row];
  }

  /** The output; words are little-endian in it. */
  ByteBuffer words() {
    return words;
  }

  byte[] out() {
    return out;
  }

  /** Writes one word of each row. */
  void write(int word, long[] values, int rows) {
    for (int row = 0, at = Long.BYTES * word; row < rows; row++) {
      words.putLong(starts[row] + at, values[row]);
    }
  }

  /** Lets go of the output. */
  void clear() {
    out = null;
    words = null;
  }
}
