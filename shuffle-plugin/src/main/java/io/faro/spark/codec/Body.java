package io.faro.spark.codec;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * Reads the columns of a row block's body. Each read is checked against the columns' end, behind which the body has 8
 * bytes and more: so 8 bytes may be loaded at any byte of a column. All offsets count from the body's start.
 */
final class Body {
  static final int HEAD_BYTES = 10;
  private static final int PAD_BYTES = 8;
  private static final int MAX_NARROW_BITS = 56;

  final byte[] array;
  final int rows;
  /** Packed words of each row. */
  final int words;
  /** Maximum number of rows of a block of these original bytes. */
  private final int maxRows;
  /** Bytes of the tail as it is stored. */
  final int stored;
  /** Position at which the columns end and the tail starts. */
  final int columnsEnd;
  private final ByteBuffer bytes;
  private final int end;
  private int at = HEAD_BYTES;

  /** {@code length}: the bytes of {@code array} that are the body. Checks its head. */
  Body(byte[] array, int length, int original) throws BlockFault {
    if (length < HEAD_BYTES + PAD_BYTES) {
      throw tooShort(length);
    }
    this.array = array;
    bytes = ByteBuffer.wrap(array, 0, length).order(ByteOrder.LITTLE_ENDIAN);
    end = length;
    maxRows = original / Integer.BYTES;
    rows = bytes.getInt(0);
    words = bytes.getShort(4) & 0xffff;
    stored = bytes.getInt(6);
    long fixed = Integer.toUnsignedLong(rows) * (Integer.BYTES + (long) Long.BYTES * words);
    if (rows == 0 || fixed > original) {
      throw new BlockFault(Integer.toUnsignedString(rows) + " rows of at least " + words
          + " words are not possible in " + original + " bytes");
    }
    if (Integer.toUnsignedLong(stored) > original - fixed) {
      throw tail(original - fixed);
    }
    columnsEnd = length - Math.max(stored, PAD_BYTES);
    if (columnsEnd < HEAD_BYTES) {
      throw tooShort(length);
    }
  }

  /** The new size of an array of rows that had room for so many: linear in the block's original length. */
  int room(int before) {
    return Math.max(rows, Math.min(2 * before, maxRows));
  }

  private static BlockFault tooShort(int length) {
    return new BlockFault("its body of " + length + " bytes is too short for its parts");
  }

  private BlockFault tail(long max) {
    return new BlockFault("its tail is stored in " + Integer.toUnsignedString(stored) + " bytes; at most " + max
        + " are possible");
  }

  /** Checks the stored tail against its length, when the columns have set it, and the bytes behind it. */
  void checkTail(long length) throws BlockFault {
    if (stored > length) {
      throw tail(length);
    }
    for (int i = columnsEnd + stored; i < end; i++) {
      if (array[i] != 0) {
        throw new BlockFault("the bytes behind its tail are not zeros");
      }
    }
  }

  int at() {
    return at;
  }

  int left() {
    return columnsEnd - at;
  }

  /** Skips so many bytes and returns where they are. */
  int take(int count) throws BlockFault {
    if (count > left()) {
      throw new BlockFault("its columns end inside a value: " + count + " bytes at byte " + at + ", " + left()
          + " are left");
    }
    int from = at;
    at += count;
    return from;
  }

  int octet() throws BlockFault {
    return array[take(1)] & 0xff;
  }

  /** The mode of the column that begins here; -1: the columns have ended. */
  int peekMode() {
    return left() > 0 ? array[at] & 0x0f : -1;
  }

  long integer(int count) throws BlockFault {
    int from = take(count);
    return count == 0 ? 0 : bytes.getLong(from) & -1L >>> Long.SIZE - Byte.SIZE * count;
  }

  /** Reads codes of so many bits into {@code values[from]} to {@code values[to - 1]}. */
  void codes(int width, long[] values, int from, int to) throws BlockFault {
    if (width > MAX_NARROW_BITS && width != Long.SIZE) {
      throw new BlockFault(
          "the column before byte " + at + " has codes of " + width + " bits; allowed are 0 to 56 and 64");
    }
    int start = take((int) (((long) (to - from) * width + 7) / 8));
    if (width == 0) {
      Arrays.fill(values, from, to, 0);
    } else if (width == Long.SIZE) {
      for (int i = from; i < to; i++) {
        values[i] = bytes.getLong(start + Long.BYTES * (i - from));
      }
    } else {
      long mask = (1L << width) - 1;
      // At most N / 4 codes of 56 bits, where N is at most 32 MiB: the number of a bit fits.
      for (int i = from, bit = 0; i < to; i++, bit += width) {
        values[i] = bytes.getLong(start + (bit >>> 3)) >>> (bit & 7) & mask;
      }
    }
  }
}
