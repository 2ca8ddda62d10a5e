package io.faro.spark.codec;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/** Random rows in the layout of {@code UnsafeRow}, and the row stream of rows. */
public final class RowSamples {
  /** Kind of a field's value. */
  private enum Kind {
    NOISE, COUNTER, SMALL, NULLS, TEXT, WIDE
  }

  private final Random random;
  private final Kind[] kinds;
  private long counter;

  public RowSamples(Random random) {
    this.random = random;
    kinds = new Kind[random.nextInt(9)];
    Arrays.setAll(kinds, i -> Kind.values()[random.nextInt(Kind.values().length)]);
  }

  /** The words of a row that a writer packs. */
  public int words() {
    return kinds.length == 0 ? 0 : 1 + kinds.length;
  }

  public List<byte[]> rows(int count) {
    List<byte[]> rows = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      rows.add(row());
    }
    return rows;
  }

  private byte[] row() {
    ByteBuffer row = ByteBuffer.allocate(Long.BYTES * words() + 64 * kinds.length + 16).order(ByteOrder.LITTLE_ENDIAN);
    int end = Long.BYTES * words();
    long nulls = 0;
    for (int i = 0; i < kinds.length; i++) {
      int at = Long.BYTES * (1 + i);
      boolean isNull = random.nextInt(5) == 0;
      switch (kinds[i]) {
        case NOISE:
          row.putLong(at, random.nextLong());
          break;
        case COUNTER:
          counter += 3;
          row.putLong(at, counter);
          break;
        case SMALL:
          row.putLong(at, random.nextInt(50) << 8);
          break;
        case NULLS:
          row.putLong(at, isNull ? 0 : 1_000_000 + random.nextInt(1000));
          nulls |= isNull ? 1L << i : 0;
          break;
        case TEXT:
          int length = random.nextInt(40);
          row.putLong(at, isNull ? 0 : (long) end << 32 | length);
          end += isNull ? 0 : text(row, end, length, (length + 7) / 8 * 8);
          break;
        default:
          int digits = isNull ? 0 : 1 + random.nextInt(16);
          row.putLong(at, (long) end << 32 | digits);
          end += text(row, end, digits, 16);
      }
    }
    if (kinds.length > 0) {
      row.putLong(0, nulls);
    }
    // Something behind the last text, sometimes.
    end += random.nextInt(3) == 0 ? text(row, end, 8, 8) : 0;
    return Arrays.copyOf(row.array(), end);
  }

  private int text(ByteBuffer row, int at, int length, int taken) {
    for (int i = 0; i < length; i++) {
      row.put(at + i, (byte) ('a' + random.nextInt(4)));
    }
    return taken;
  }

  public static byte[] stream(List<byte[]> rows) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    for (byte[] row : rows) {
      out.write(ByteBuffer.allocate(Integer.BYTES).putInt(row.length).array(), 0, Integer.BYTES);
      out.write(row, 0, row.length);
    }
    return out.toByteArray();
  }
}
