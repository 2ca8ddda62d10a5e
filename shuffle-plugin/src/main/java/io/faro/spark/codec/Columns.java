package io.faro.spark.codec;

import java.util.Arrays;

/** Decodes columns of values. Keeps its scratch from one block to the next. */
final class Columns {
  static final int TEXT = 6;
  static final int WIDE = 7;
  /** Modes that a column may have, a bit for each: inside a dictionary, inside runs, and elsewhere. */
  private static final int OF_ENTRIES = 0b1111;
  private static final int OF_RUNS = 0b1_1111;
  private static final int ANY = 0b11_1111;
  private static final int MAX_BASE_BYTES = 8;

  private final long[] entries = new long[255];
  private long[] runs = new long[0];

  /** Reads a column, neither TEXT nor WIDE, of {@code count} values; at least one. */
  void take(Body body, long[] values, int count) throws BlockFault {
    take(body, ANY, values, count);
  }

  /** Reads the first byte of a column that must be TEXT or WIDE. */
  static void takeTextual(Body body) throws BlockFault {
    int at = body.at();
    int first = body.octet();
    if (first != TEXT && first != WIDE) {
      throw mode(at, first);
    }
  }

  private static BlockFault mode(int at, int found) {
    return new BlockFault(String.format("the column at byte %d has the mode 0x%02x", at, found));
  }

  private void take(Body body, int allowed, long[] values, int count) throws BlockFault {
    int at = body.at();
    int first = body.octet();
    int mode = first & 0x0f;
    int base = first >> 4;
    if ((allowed >> mode & 1) == 0 || base > MAX_BASE_BYTES || mode > 3 && base > 0) {
      throw mode(at, first);
    }
    switch (mode) {
      case 0:
        masked(body, base, values, count);
        break;
      case 1:
        offsets(body, base, values, count);
        break;
      case 2:
        offsetsOrZero(body, base, values, count);
        break;
      case 3:
        deltas(body, base, values, count);
        break;
      case 4:
        dictionary(body, at, values, count);
        break;
      default:
        runs(body, at, values, count);
    }
  }

  private static void masked(Body body, int baseBytes, long[] values, int count) throws BlockFault {
    int which = body.octet();
    long mask = 0;
    for (int i = 0; i < Long.BYTES; i++) {
      if ((which >> i & 1) != 0) {
        mask |= (long) body.octet() << Byte.SIZE * i;
      }
    }
    long base = body.integer(baseBytes);
    if (mask == 0) {
      Arrays.fill(values, 0, count, base);
      return;
    }
    body.codes(Long.bitCount(mask), values, 0, count);
    deposit(mask, base, values, count);
  }

  /** Moves the bits of each code to the bits of the mask, one stretch of adjacent bits after the other. */
  private static void deposit(long mask, long base, long[] values, int count) {
    int stretches = Long.bitCount(mask & ~(mask << 1));
    long[] from = new long[stretches];
    int[] shift = new int[stretches];
    int code = 0;
    long rest = mask;
    for (int i = 0; i < stretches; i++) {
      int at = Long.numberOfTrailingZeros(rest);
      int bits = Long.numberOfTrailingZeros(~(rest >>> at));
      from[i] = bits == Long.SIZE ? -1 : (1L << bits) - 1 << code;
      shift[i] = at - code;
      code += bits;
      rest = bits + at >= Long.SIZE ? 0 : rest >>> at + bits << at + bits;
    }
    if (stretches == 1) {
      int up = shift[0];
      for (int i = 0; i < count; i++) {
        values[i] = values[i] << up | base;
      }
      return;
    }
    for (int i = 0; i < count; i++) {
      long value = base;
      for (int j = 0; j < stretches; j++) {
        value |= (values[i] & from[j]) << shift[j];
      }
      values[i] = value;
    }
  }

  private static void offsets(Body body, int baseBytes, long[] values, int count) throws BlockFault {
    int width = body.octet();
    long base = body.integer(baseBytes);
    body.codes(width, values, 0, count);
    for (int i = 0; i < count; i++) {
      values[i] += base;
    }
  }

  private static void offsetsOrZero(Body body, int baseBytes, long[] values, int count) throws BlockFault {
    int width = body.octet();
    long base = body.integer(baseBytes);
    body.codes(width, values, 0, count);
    for (int i = 0; i < count; i++) {
      values[i] = values[i] == 0 ? 0 : base + values[i];
    }
  }

  private static void deltas(Body body, int baseBytes, long[] values, int count) throws BlockFault {
    int width = body.octet();
    long base = body.integer(baseBytes);
    long value = body.integer(Long.BYTES);
    body.codes(width, values, 1, count);
    values[0] = value;
    for (int i = 1; i < count; i++) {
      value += base + values[i];
      values[i] = value;
    }
  }

  private void dictionary(Body body, int at, long[] values, int count) throws BlockFault {
    int size = body.octet();
    if (size == 0) {
      throw new BlockFault("the dictionary at byte " + at + " has no entries");
    }
    take(body, OF_ENTRIES, entries, size);
    body.codes(Integer.SIZE - Integer.numberOfLeadingZeros(size - 1), values, 0, count);
    for (int i = 0; i < count; i++) {
      long code = values[i];
      if (code >= size) {
        throw new BlockFault("the dictionary at byte " + at + " has " + size + " entries and the code " + code);
      }
      values[i] = entries[(int) code];
    }
  }

  private void runs(Body body, int at, long[] values, int count) throws BlockFault {
    int number = (int) body.integer(Short.BYTES);
    int bitmap = body.take((count + 7) / 8);
    int changes = 0;
    for (int i = bitmap; i < body.at(); i++) {
      changes += Integer.bitCount(body.array[i] & 0xff);
    }
    boolean behind = count % 8 != 0 && (body.array[body.at() - 1] & 0xff) >> count % 8 != 0;
    if (number == 0 || changes != number - 1 || (body.array[bitmap] & 1) != 0 || behind) {
      throw new BlockFault("the column at byte " + at + " has " + number + " runs of " + count + " values, and "
          + changes + " changes" + (behind ? ", some behind its last value" : ""));
    }
    if (runs.length < number) {
      runs = new long[Math.max(number, Math.min(2 * runs.length, 1 << 16))];
    }
    take(body, OF_RUNS, runs, number);
    for (int i = 0, run = 0; i < count; i++) {
      run += body.array[bitmap + (i >> 3)] >> (i & 7) & 1;
      values[i] = runs[run];
    }
  }
}
