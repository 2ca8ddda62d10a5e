package io.faro.spark.codec;

import com.github.luben.zstd.Zstd;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.LongStream;
import net.jpountz.lz4.LZ4Factory;

/** Makes row blocks by docs/design/row-block-format.md, not with Faro's encoder; the modes of columns are random. */
public final class RowBlockEncoder {
  private static final int MASK = 0;
  private static final int FOR = 1;
  private static final int FORZ = 2;
  private static final int DELTA = 3;
  private static final int DICT = 4;
  private static final int RUNS = 5;
  private static final int TEXT = 6;
  private static final int WIDE = 7;

  private final Random random;
  private ByteArrayOutputStream out;

  public RowBlockEncoder(Random random) {
    this.random = random;
  }

  /** The block of rows, each the bytes of an {@code UnsafeRow}; the first {@code words} words are packed. */
  public byte[] block(List<byte[]> rows, int words) {
    out = new ByteArrayOutputStream();
    int count = rows.size();
    ByteArrayOutputStream tail = new ByteArrayOutputStream();
    long[] values = new long[count];
    Arrays.setAll(values, i -> rows.get(i).length / Long.BYTES);
    column(values, RUNS);
    int[] places = new int[count];
    Arrays.fill(places, Long.BYTES * words);
    for (int word = 0; word < words; word++) {
      for (int i = 0; i < count; i++) {
        values[i] = word(rows.get(i), word);
      }
      int textual = random.nextInt(4) == 0 ? -1 : textual(rows, values, places);
      if (textual < 0) {
        column(values, RUNS);
        continue;
      }
      out.write(textual);
      long[] lengths = new long[count];
      for (int i = 0; i < count; i++) {
        int bytes = (int) values[i];
        boolean none = textual == TEXT && values[i] == 0;
        lengths[i] = textual == WIDE ? bytes : none ? 0 : bytes + 1;
        tail.write(rows.get(i), places[i], none ? 0 : bytes);
        places[i] += textual == WIDE ? 16 : none ? 0 : padded(bytes);
      }
      column(lengths, RUNS);
    }
    for (int i = 0; i < count; i++) {
      tail.write(rows.get(i), places[i], rows.get(i).length - places[i]);
    }
    return finish(rows, words, tail.toByteArray());
  }

  private byte[] finish(List<byte[]> rows, int words, byte[] tail) {
    boolean zstd = random.nextInt(4) == 0;
    byte[] stored = random.nextInt(8) == 0 ? tail
        : zstd ? Zstd.compress(tail) : LZ4Factory.safeInstance().fastCompressor().compress(tail);
    if (stored.length >= tail.length) {
      stored = tail;
    }
    byte[] columns = out.toByteArray();
    int original = rows.stream().mapToInt(row -> Integer.BYTES + row.length).sum();
    ByteBuffer body = ByteBuffer.allocate(10 + columns.length + Math.max(8, stored.length))
        .order(ByteOrder.LITTLE_ENDIAN);
    body.putInt(rows.size()).putShort((short) words).putInt(stored.length).put(columns).put(stored);
    return withHeader(zstd ? 0x40 : 0x30, original, body.array());
  }

  /** A block with a right checksum, of the least level that allows its original length. */
  public static byte[] withHeader(int method, int original, byte[] body) {
    int level = Math.max(0, 32 - Integer.numberOfLeadingZeros(original - 1) - 10);
    ByteBuffer block = ByteBuffer.allocate(21 + body.length).order(ByteOrder.LITTLE_ENDIAN);
    block.put("LZ4Block".getBytes(java.nio.charset.StandardCharsets.US_ASCII)).put((byte) (method | level))
        .putInt(body.length).putInt(original).putInt(0).put(body);
    return seal(block.array());
  }

  /** Puts the right checksum into a block. */
  public static byte[] seal(byte[] block) {
    java.util.zip.Checksum crc = new Crc32c();
    crc.update(block, 8, 9);
    crc.update(block, 21, block.length - 21);
    ByteBuffer.wrap(block).order(ByteOrder.LITTLE_ENDIAN).putInt(17, (int) crc.getValue());
    return block;
  }

  private static long word(byte[] row, int word) {
    return ByteBuffer.wrap(row).order(ByteOrder.LITTLE_ENDIAN).getLong(Long.BYTES * word);
  }

  private static int padded(int bytes) {
    return (bytes + 7) / 8 * 8;
  }

  /** TEXT or WIDE, where the words are what this mode makes of their lengths; else -1. */
  private static int textual(List<byte[]> rows, long[] words, int[] places) {
    boolean text = true;
    boolean wide = true;
    for (int i = 0; i < words.length; i++) {
      byte[] row = rows.get(i);
      int bytes = (int) words[i];
      boolean here = words[i] >>> 32 == places[i] && bytes >= 0 && bytes <= row.length - places[i];
      text &= words[i] == 0 || here && zeros(row, places[i] + bytes, places[i] + padded(bytes));
      wide &= here && bytes <= 16 && row.length - places[i] >= 16 && zeros(row, places[i] + bytes, places[i] + 16);
    }
    return wide ? WIDE : text ? TEXT : -1;
  }

  private static boolean zeros(byte[] row, int from, int to) {
    for (int i = from; i < to; i++) {
      if (row[i] != 0) {
        return false;
      }
    }
    return true;
  }

  /** {@code highest}: the last mode that the column may have. */
  private void column(long[] values, int highest) {
    int mode = random.nextInt(highest + 1);
    long[] distinct = LongStream.of(values).distinct().toArray();
    int changes = 0;
    for (int i = 1; i < values.length; i++) {
      changes += values[i] == values[i - 1] ? 0 : 1;
    }
    if (mode == DICT && distinct.length > 255 || mode == RUNS && changes >= 65_535) {
      mode = MASK;
    }
    switch (mode) {
      case MASK:
        mask(values);
        break;
      case FOR:
        offsets(FOR, values, LongStream.of(values).min().getAsLong());
        break;
      case FORZ:
        offsets(FORZ, values, LongStream.of(values).min().getAsLong() - 1);
        break;
      case DELTA:
        deltas(values);
        break;
      case DICT:
        dictionary(values, distinct);
        break;
      default:
        runs(values, changes + 1);
    }
  }

  private void mask(long[] values) {
    long all = -1;
    long any = 0;
    for (long value : values) {
      all &= value;
      any |= value;
    }
    long mask = Long.bitCount(all ^ any) > 56 ? -1 : all ^ any;
    long base = mask == -1 ? 0 : all;
    first(MASK, base);
    int which = 0;
    for (int i = 0; i < 8; i++) {
      which |= (mask >>> 8 * i & 0xff) == 0 ? 0 : 1 << i;
    }
    out.write(which);
    for (int i = 0; i < 8; i++) {
      if ((which >> i & 1) != 0) {
        out.write((int) (mask >>> 8 * i));
      }
    }
    base(base);
    codes(LongStream.of(values).map(value -> extract(value, mask)).toArray(), Long.bitCount(mask));
  }

  private static long extract(long value, long mask) {
    long code = 0;
    for (int bit = 0, to = 0; bit < 64; bit++) {
      if ((mask >>> bit & 1) != 0) {
        code |= (value >>> bit & 1) << to++;
      }
    }
    return code;
  }

  private void offsets(int mode, long[] values, long base) {
    // Zero is the code 0 of FORZ; no other value may have it.
    long[] codes = LongStream.of(values).map(value -> mode == FORZ && value == 0 ? 0 : value - base).toArray();
    first(mode, base);
    int width = width(codes);
    out.write(width);
    base(base);
    codes(codes, width);
  }

  private void deltas(long[] values) {
    long[] deltas = new long[values.length - 1];
    Arrays.setAll(deltas, i -> values[i + 1] - values[i]);
    long base = LongStream.of(deltas).min().orElse(0);
    long[] codes = LongStream.of(deltas).map(delta -> delta - base).toArray();
    first(DELTA, base);
    int width = width(codes);
    out.write(width);
    base(base);
    little(values[0], 8);
    codes(codes, width);
  }

  private void dictionary(long[] values, long[] distinct) {
    first(DICT, 0);
    out.write(distinct.length);
    column(distinct, DELTA);
    List<Long> entries = new ArrayList<>();
    LongStream.of(distinct).forEach(entries::add);
    codes(LongStream.of(values).map(value -> entries.indexOf(value)).toArray(),
        32 - Integer.numberOfLeadingZeros(distinct.length - 1));
  }

  private void runs(long[] values, int runs) {
    byte[] bitmap = new byte[(values.length + 7) / 8];
    long[] of = new long[runs];
    of[0] = values[0];
    for (int i = 1, run = 0; i < values.length; i++) {
      if (values[i] != values[i - 1]) {
        bitmap[i / 8] |= (byte) (1 << i % 8);
        of[++run] = values[i];
      }
    }
    first(RUNS, 0);
    little(runs, 2);
    out.write(bitmap, 0, bitmap.length);
    column(of, DICT);
  }

  private static int width(long[] codes) {
    long any = LongStream.of(codes).reduce(0, (a, b) -> a | b);
    int width = 64 - Long.numberOfLeadingZeros(any);
    return width > 56 ? 64 : width;
  }

  private static int bytes(long base) {
    return (64 - Long.numberOfLeadingZeros(base) + 7) / 8;
  }

  private void first(int mode, long base) {
    out.write(mode | bytes(base) << 4);
  }

  private void base(long base) {
    little(base, bytes(base));
  }

  private void little(long value, int bytes) {
    for (int i = 0; i < bytes; i++) {
      out.write((int) (value >>> 8 * i));
    }
  }

  private void codes(long[] codes, int width) {
    byte[] bytes = new byte[(int) (((long) codes.length * width + 7) / 8)];
    for (int i = 0, at = 0; i < codes.length; i++) {
      for (int bit = 0; bit < width; bit++, at++) {
        bytes[at / 8] |= (byte) ((codes[i] >>> bit & 1) << at % 8);
      }
    }
    out.write(bytes, 0, bytes.length);
  }
}
