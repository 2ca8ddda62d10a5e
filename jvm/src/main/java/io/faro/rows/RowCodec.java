package io.faro.rows;

import java.util.Locale;

/** How shuffle blocks are compressed. */
public enum RowCodec {
  NONE(0), LZ4(1), ZSTD(2);

  final int code;

  RowCodec(int code) {
    this.code = code;
  }

  /** The codec of {@code spark.io.compression.codec}, a short name or a class name; {@code null}: not known here. */
  public static RowCodec named(String name) {
    switch (name.toLowerCase(Locale.ROOT)) {
      case "lz4":
      case "org.apache.spark.io.lz4compressioncodec":
        // Writes what lz4 writes; native code reads the row blocks that it can read too.
      case "io.faro.spark.rowscodec":
        return LZ4;
      case "zstd":
      case "org.apache.spark.io.zstdcompressioncodec":
        // The same for zstd.
      case "io.faro.spark.zstdrowscodec":
        return ZSTD;
      default:
        return null;
    }
  }
}
