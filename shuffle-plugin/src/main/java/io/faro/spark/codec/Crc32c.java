package io.faro.spark.codec;

import java.util.zip.Checksum;

/** CRC-32C: Java's own, which Java 8 does not have; there this one. */
final class Crc32c implements Checksum {
  private static final int POLYNOMIAL = 0x82f63b78;
  private static final int[] TABLE = table();

  private int state = -1;

  static Checksum create() {
    try {
      return (Checksum) Class.forName("java.util.zip.CRC32C").getConstructor().newInstance();
    } catch (ReflectiveOperationException e) {
      return new Crc32c();
    }
  }

  private static int[] table() {
    int[] table = new int[256];
    for (int i = 0; i < table.length; i++) {
      int value = i;
      for (int bit = 0; bit < Byte.SIZE; bit++) {
        value = (value & 1) == 0 ? value >>> 1 : value >>> 1 ^ POLYNOMIAL;
      }
      table[i] = value;
    }
    return table;
  }

  @Override
  public void update(int octet) {
    state = state >>> Byte.SIZE ^ TABLE[(state ^ octet) & 0xff];
  }

  @Override
  public void update(byte[] bytes, int from, int count) {
    for (int i = from; i < from + count; i++) {
      update(bytes[i]);
    }
  }

  @Override
  public long getValue() {
    return ~state & 0xffff_ffffL;
  }

  @Override
  public void reset() {
    state = -1;
  }
}
