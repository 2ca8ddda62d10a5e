package io.faro.spark.codec;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.BitSet;

/** Texts and wide values of a block: their words and places follow from their lengths, their bytes are in the tail. */
final class Texts {
  private static final int WIDE_BYTES = 16;

  /** For each row, where its next text starts, in bytes from the row's start. */
  private int[] places = new int[0];
  /** The bytes of each text, by column with texts and row. There are at most as many as words in the block's rows. */
  private int[] bytes = new int[0];
  private int columns;
  private final BitSet wide = new BitSet();

  /** Begins a block: all places are behind the packed words. */
  void start(Body body) {
    if (places.length < body.rows) {
      places = new int[body.room(places.length)];
    }
    columns = 0;
    wide.clear();
    rewind(body);
  }

  private void rewind(Body body) {
    Arrays.fill(places, 0, body.rows, Long.BYTES * body.words);
  }

  /** Adds a column of lengths, for which it writes the words, and zeros where its bytes do not fill their words. */
  void add(Body body, int word, boolean isWide, Rows rows, long[] lengths) throws BlockFault {
    int first = columns * body.rows;
    if (bytes.length < first + body.rows) {
      bytes = Arrays.copyOf(bytes, Math.max(first + body.rows, Math.min(2 * bytes.length, body.rows * body.words)));
    }
    wide.set(columns++, isWide);
    for (int row = 0; row < body.rows; row++) {
      long value = lengths[row];
      int place = places[row];
      int room = rows.bytes(row) - place;
      boolean fits = value >= 0 && (isWide ? value <= WIDE_BYTES && room >= WIDE_BYTES : value - 1 <= room);
      if (!fits) {
        throw new BlockFault("a text of word " + word + " ends behind its row's end, in row " + row);
      }
      int length = (int) (isWide || value == 0 ? value : value - 1);
      int taken = taken(isWide, length);
      ByteBuffer words = rows.words();
      words.putLong(rows.start(row) + Long.BYTES * word, !isWide && value == 0 ? 0 : (long) place << 32 | length);
      // The last words; what the tail has of them is written later.
      for (int at = taken - (isWide ? WIDE_BYTES : Math.min(taken, Long.BYTES)); at < taken; at += Long.BYTES) {
        words.putLong(rows.start(row) + place + at, 0);
      }
      bytes[first + row] = length;
      // A row's room is a multiple of 8, so the rounded length fits too.
      places[row] = place + taken;
    }
  }

  private static int taken(boolean isWide, int length) {
    return isWide ? WIDE_BYTES : length + Long.BYTES - 1 & -Long.BYTES;
  }

  /** The tail's bytes; all of them have a place in the rows, so their number fits. */
  int tailBytes(Body body, Rows rows) {
    int all = 0;
    for (int row = 0; row < body.rows; row++) {
      all += rows.bytes(row) - places[row];
    }
    for (int i = 0; i < columns * body.rows; i++) {
      all += bytes[i];
    }
    return all;
  }

  /** Writes the tail, which is at {@code from[at]}, into the rows. */
  void write(Body body, Rows rows, byte[] from, int at) {
    if (columns > 0) {
      rewind(body);
    }
    int next = at;
    byte[] out = rows.out();
    for (int column = 0; column < columns; column++) {
      boolean isWide = wide.get(column);
      for (int row = 0, i = column * body.rows; row < body.rows; row++, i++) {
        System.arraycopy(from, next, out, rows.start(row) + places[row], bytes[i]);
        next += bytes[i];
        places[row] += taken(isWide, bytes[i]);
      }
    }
    for (int row = 0; row < body.rows; row++) {
      int rest = rows.bytes(row) - places[row];
      System.arraycopy(from, next, out, rows.start(row) + places[row], rest);
      next += rest;
    }
  }
}
