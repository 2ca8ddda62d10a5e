package io.faro.spark.codec;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/** The header of a block in lz4-java's stream, checked against the bounds of its method. */
final class BlockHeader {
  static final int BYTES = 21;
  /** The first byte of a block; no zstd frame begins with it. */
  static final int FIRST_BYTE = 'L';
  /** Start of the bytes that a row block's checksum covers: the token and both lengths. */
  static final int CHECKED_FROM = 8;
  static final int CHECKED_BYTES = 9;
  private static final byte[] MAGIC = {'L', 'Z', '4', 'B', 'l', 'o', 'c', 'k'};
  private static final int MIN_ROW_BODY = 20;
  private static final int MIN_LEVEL_BITS = 10;

  final int token;
  final Method method;
  /** Bytes that follow the header. */
  final int body;
  /** Bytes that they become. */
  final int original;
  final int checksum;

  /** Method of a block, from the upper half of its token. */
  enum Method {
    RAW(0x10), LZ4(0x20), ROWS_LZ4(0x30), ROWS_ZSTD(0x40);

    private final int bits;

    Method(int bits) {
      this.bits = bits;
    }

    boolean isRows() {
      return this == ROWS_LZ4 || this == ROWS_ZSTD;
    }

    private static Method of(int token) throws BlockFault {
      for (Method method : values()) {
        if (method.bits == (token & 0xf0)) {
          return method;
        }
      }
      throw new BlockFault("this method is unknown");
    }
  }

  private BlockHeader(int token, Method method, int body, int original, int checksum) {
    this.token = token;
    this.method = method;
    this.body = body;
    this.original = original;
    this.checksum = checksum;
  }

  /** The token of a header, for errors; -1: it does not begin as a header. */
  static int token(byte[] bytes) {
    return Arrays.equals(Arrays.copyOf(bytes, MAGIC.length), MAGIC) ? bytes[CHECKED_FROM] & 0xff : -1;
  }

  /** Bytes that follow a header that was parsed. */
  static int bodyBytes(byte[] bytes) {
    return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).getInt(9);
  }

  /** {@code bytes}: at least {@link #BYTES}. */
  static BlockHeader parse(byte[] bytes) throws BlockFault {
    int token = token(bytes);
    if (token < 0) {
      throw new BlockFault("it does not begin with LZ4Block");
    }
    ByteBuffer fields = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    Method method = Method.of(token);
    BlockHeader header =
        new BlockHeader(token, method, fields.getInt(9), fields.getInt(13), fields.getInt(17));
    header.check();
    return header;
  }

  private void check() throws BlockFault {
    int max = 1 << MIN_LEVEL_BITS + (token & 0x0f);
    within("original bytes", original, method.isRows() ? Integer.BYTES : 0, max);
    switch (method) {
      case RAW:
        within("bytes", body, original, original);
        break;
      case LZ4:
        // A byte of LZ4 stands for at most 255; what cannot be compressed grows by one byte in 255.
        within("bytes", body, original == 0 ? 0 : Math.max(1, original / 255),
            original == 0 ? 0 : original + original / 255 + 16);
        break;
      default:
        within("bytes", body, MIN_ROW_BODY, 2 * original + 64);
    }
    if (original == 0 && checksum != 0) {
      throw new BlockFault("an end block with the checksum " + Integer.toHexString(checksum));
    }
  }

  private static void within(String what, int found, int min, int max) throws BlockFault {
    if (found < min || found > max) {
      throw new BlockFault("its header says " + found + " " + what + "; allowed are " + min + " to " + max);
    }
  }
}
