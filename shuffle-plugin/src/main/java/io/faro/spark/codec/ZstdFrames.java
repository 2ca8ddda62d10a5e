package io.faro.spark.codec;

/** Finds where a zstd frame ends (RFC 8878, 3.1.1), which older versions of zstd-jni do not tell. */
final class ZstdFrames {
  private ZstdFrames() {}

  /** Checks that so many bytes are one frame and nothing else, and that it needs no dictionary. */
  static void checkOne(byte[] array, int start, int bytes) throws BlockFault {
    int end = start + bytes;
    for (int i = 0; i < Integer.BYTES; i++) {
      if (octet(array, start + i, end) != (FrameWalk.MAGIC >> Byte.SIZE * i & 0xff)) {
        throw new BlockFault("its tail is not a zstd frame");
      }
    }
    if ((octet(array, start + Integer.BYTES, end) & 3) != 0) {
      throw new BlockFault("its tail's zstd frame has a dictionary");
    }
    FrameWalk walk = new FrameWalk();
    int taken = walk.take(array, start, bytes);
    if (!walk.isBetweenFrames()) {
      throw new BlockFault("its tail's zstd frame is not whole");
    }
    if (taken != bytes) {
      throw new BlockFault("its tail is a zstd frame of " + taken + " bytes in " + bytes + " bytes");
    }
  }

  private static int octet(byte[] array, int at, int end) throws BlockFault {
    if (at >= end) {
      throw new BlockFault("its tail's zstd frame is not whole");
    }
    return array[at] & 0xff;
  }
}
