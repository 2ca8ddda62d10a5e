package io.faro.rows;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.Locale;
import org.junit.jupiter.api.Test;

/** Tests the names that Spark has for codecs. */
class RowCodecTest {
  @Test
  void shortNamesAndClassNames() {
    assertEquals(RowCodec.LZ4, RowCodec.named("lz4"));
    assertEquals(RowCodec.ZSTD, RowCodec.named("zstd"));
    assertEquals(RowCodec.LZ4, RowCodec.named("org.apache.spark.io.LZ4CompressionCodec"));
    assertEquals(RowCodec.ZSTD, RowCodec.named("org.apache.spark.io.ZStdCompressionCodec"));
    assertEquals(RowCodec.LZ4, RowCodec.named("io.faro.spark.RowsCodec"));
    assertEquals(RowCodec.ZSTD, RowCodec.named("io.faro.spark.ZstdRowsCodec"));
  }

  @Test
  void upperAndLowerCaseInAnyLanguage() {
    Locale before = Locale.getDefault();
    // In Turkish the lower case of I is not i.
    Locale.setDefault(new Locale("tr"));
    try {
      assertEquals(RowCodec.LZ4, RowCodec.named("LZ4"));
      assertEquals(RowCodec.ZSTD, RowCodec.named("Zstd"));
      assertEquals(RowCodec.ZSTD, RowCodec.named("ORG.APACHE.SPARK.IO.ZSTDCOMPRESSIONCODEC"));
    } finally {
      Locale.setDefault(before);
    }
  }

  /** Spark decodes the blocks of these codecs. */
  @Test
  void othersAreNotKnown() {
    String[] names = {"snappy", "lzf", "none", "", " lz4", "org.apache.spark.io.SnappyCompressionCodec"};
    for (String name : names) {
      assertNull(RowCodec.named(name), name);
    }
  }
}
