package io.faro.spark.codec;

import com.github.luben.zstd.Zstd;
import net.jpountz.lz4.LZ4Exception;
import net.jpountz.lz4.LZ4Factory;
import net.jpountz.lz4.LZ4SafeDecompressor;

/** Decompresses pieces whose decompressed length is known, by the libraries that Spark carries. */
final class Decompressors {
  private static final LZ4SafeDecompressor LZ4 = lz4();

  private Decompressors() {}

  /**
   * lz4-java's fastest decompressor that checks its input. The decompressors over {@code sun.misc.Unsafe} up to 1.8.0
   * may leave the arrays on a corrupt input (CVE-2025-12183): without lz4-java's native code the plain ones are used.
   */
  private static LZ4SafeDecompressor lz4() {
    LZ4Factory fastest = LZ4Factory.fastestInstance();
    boolean checked = fastest.toString().endsWith("JNI");
    return (checked ? fastest : LZ4Factory.safeInstance()).safeDecompressor();
  }

  /** Writes exactly {@code length} bytes to the start of {@code to}. */
  static void lz4(byte[] from, int start, int bytes, byte[] to, int length) throws BlockFault {
    int found;
    try {
      found = LZ4.decompress(from, start, bytes, to, 0, length);
    } catch (LZ4Exception | IndexOutOfBoundsException e) {
      throw new BlockFault(bytes + " bytes of LZ4 do not decompress to " + length + ": " + e.getMessage(), e);
    }
    expect(found, length);
    checkOffsets(from, start, start + bytes);
  }

  /**
   * Refuses a match with offset 0, which no encoder writes: LZ4's own decoders copy whatever their buffer has there,
   * and native code's refuses it. Called for what has decompressed, so each sequence is whole.
   */
  private static void checkOffsets(byte[] from, int start, int end) throws BlockFault {
    int at = start;
    while (at < end) {
      int token = from[at++] & 0xff;
      long literals = token >>> 4;
      if (literals == 15) {
        int more;
        do {
          more = at < end ? from[at++] & 0xff : 0;
          literals += more;
        } while (more == 255);
      }
      // The last sequence has no match.
      if (literals >= end - at) {
        return;
      }
      at += (int) literals;
      if (end - at >= 2 && from[at] == 0 && from[at + 1] == 0) {
        throw new BlockFault((end - start) + " bytes of LZ4 do not decompress: the match at byte " + (at - start)
            + " has the offset 0");
      }
      at += 2;
      if ((token & 15) == 15) {
        while (at < end && from[at++] == -1) {
          // Each says that another one follows.
        }
      }
    }
  }

  /** The same for one zstd frame without a dictionary. */
  static void zstd(byte[] from, int start, int bytes, byte[] to, int length) throws BlockFault {
    ZstdFrames.checkOne(from, start, bytes);
    long found;
    try {
      found = Zstd.decompressByteArray(to, 0, length, from, start, bytes);
    } catch (RuntimeException e) {
      throw new BlockFault(bytes + " bytes of zstd do not decompress to " + length + ": " + e.getMessage(), e);
    }
    if (Zstd.isError(found)) {
      throw new BlockFault(
          bytes + " bytes of zstd do not decompress to " + length + ": " + Zstd.getErrorName(found));
    }
    expect(found, length);
  }

  private static void expect(long found, int length) throws BlockFault {
    if (found != length) {
      throw new BlockFault("what is compressed decompresses to " + found + " bytes instead of " + length);
    }
  }
}
