package io.faro.spark.codec;

/**
 * Follows the bytes of zstd frames (RFC 8878, 3.1) to where each ends, in any cuts. It checks nothing: what begins as
 * no frame never ends, so that the decompressor, which gets all of it, finds the fault.
 */
final class FrameWalk {
  static final int MAGIC = 0xfd2fb528;
  private static final int SKIPPABLE = 0x184d2a50;
  private static final int SKIPPABLE_BITS = 0xfffffff0;
  private static final int CHECKSUM_BYTES = 4;
  private static final int[] DICTIONARY_BYTES = {0, 1, 2, 4};

  private Field field = Field.MAGIC;
  /** The bytes of the field that have come, the lowest first. */
  private int value;
  private int valueBytes;
  /** Bytes before the field that are of no account here. */
  private long skipped;
  private boolean checksum;

  /** The fields of a frame that say where it ends. */
  private enum Field {
    MAGIC(4), SKIPPED_SIZE(4), DESCRIPTOR(1), BLOCK_HEAD(3), NO_FRAME(0);

    final int bytes;

    Field(int bytes) {
      this.bytes = bytes;
    }
  }

  boolean isBetweenFrames() {
    return field == Field.MAGIC && valueBytes == 0 && skipped == 0;
  }

  /** Follows some bytes, at least one, up to the end of the frame that they begin in; returns how many of them. */
  int take(byte[] bytes, int from, int count) {
    int at = from;
    int end = from + count;
    do {
      if (field == Field.NO_FRAME) {
        return count;
      } else if (skipped > 0) {
        int now = (int) Math.min(skipped, end - at);
        skipped -= now;
        at += now;
      } else {
        value |= (bytes[at++] & 0xff) << Byte.SIZE * valueBytes++;
        if (valueBytes == field.bytes) {
          next();
        }
      }
    } while (at < end && !isBetweenFrames());
    return at - from;
  }

  private void next() {
    switch (field) {
      case MAGIC:
        field = value == MAGIC ? Field.DESCRIPTOR
            : (value & SKIPPABLE_BITS) == SKIPPABLE ? Field.SKIPPED_SIZE : Field.NO_FRAME;
        break;
      case SKIPPED_SIZE:
        skipped = Integer.toUnsignedLong(value);
        field = Field.MAGIC;
        break;
      case DESCRIPTOR:
        skipped = headerBytes(value);
        checksum = (value & 4) != 0;
        field = Field.BLOCK_HEAD;
        break;
      case BLOCK_HEAD:
        // A block that repeats one byte has one.
        skipped = (value >> 1 & 3) == 1 ? 1 : value >> 3;
        if ((value & 1) != 0) {
          skipped += checksum ? CHECKSUM_BYTES : 0;
          field = Field.MAGIC;
        }
        break;
      default:
        throw new IllegalStateException("no field is read in the state " + field);
    }
    value = 0;
    valueBytes = 0;
  }

  /** Bytes between a frame's descriptor and its first block. */
  static int headerBytes(int descriptor) {
    boolean single = (descriptor & 0x20) != 0;
    int sizeBytes = descriptor >> 6 == 0 ? (single ? 1 : 0) : 1 << (descriptor >> 6);
    return (single ? 0 : 1) + DICTIONARY_BYTES[descriptor & 3] + sizeBytes;
  }
}
