package io.faro.rows;

import io.faro.Nullable;
import java.util.Locale;

/** The compression of shuffle blocks. */
public enum RowCodec {
  NONE(0), LZ4(1), ZSTD(2);

  final int code;

  RowCodec(int code) {
    this.code = code;
  }

  /**
   * Returns the codec for a value of {@code spark.io.compression.codec}, a short name or a class name; null if
   * native code does not know it.
   */
  @Nullable public static RowCodec named(String name) {
    switch (name.toLowerCase(Locale.ROOT)) {
      case "lz4":
      case "org.apache.spark.io.lz4compressioncodec":
        // This codec writes what lz4 writes, and may write row blocks, which native code reads too.
      case "io.faro.spark.rowscodec":
        return LZ4;
      case "zstd":
      case "org.apache.spark.io.zstdcompressioncodec":
        // This codec does the same for zstd.
      case "io.faro.spark.zstdrowscodec":
        return ZSTD;
      default:
        return null;
    }
  }
}
