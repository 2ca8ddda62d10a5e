package io.faro.spark.codec;

/** Where a zstd frame ends (RFC 8878, 3.1.1), which older versions of zstd-jni do not tell. */
final class ZstdFrames {
  private static final int[] MAGIC = {0x28, 0xb5, 0x2f, 0xfd};
  private static final int BLOCK_HEAD_BYTES = 3;
  private static final int CHECKSUM_BYTES = 4;

  private ZstdFrames() {}

  /** Checks that so many bytes are one frame and nothing else, and that it needs no dictionary. */
  static void checkOne(byte[] array, int start, int bytes) throws BlockFault {
    int end = start + bytes;
    int at = start;
    for (int expected : MAGIC) {
      if (octet(array, at++, end) != expected) {
        throw new BlockFault("its tail is not a zstd frame");
      }
    }
    int descriptor = octet(array, at++, end);
    if ((descriptor & 3) != 0) {
      throw new BlockFault("its tail's zstd frame has a dictionary");
    }
    boolean single = (descriptor & 0x20) != 0;
    int sizeBytes = descriptor >> 6 == 0 ? (single ? 1 : 0) : 1 << (descriptor >> 6);
    at += (single ? 0 : 1) + sizeBytes;
    boolean last = false;
    while (!last) {
      int head = octet(array, at, end) | octet(array, at + 1, end) << 8 | octet(array, at + 2, end) << 16;
      last = (head & 1) != 0;
      boolean repeated = (head >> 1 & 3) == 1;
      // At most 2^21 for each block, and each block begins within the array.
      at += BLOCK_HEAD_BYTES + (repeated ? 1 : head >> 3);
    }
    at += (descriptor & 4) == 0 ? 0 : CHECKSUM_BYTES;
    if (at != end) {
      throw new BlockFault("its tail is a zstd frame of " + (at - start) + " bytes in " + bytes + " bytes");
    }
  }

  private static int octet(byte[] array, int at, int end) throws BlockFault {
    if (at >= end) {
      throw new BlockFault("its tail's zstd frame is not whole");
    }
    return array[at] & 0xff;
  }
}
