package io.faro.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;

import io.faro.spark.conf.FaroKeys;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

class RowBlocksTest {
  private static String why(String... settings) {
    SparkConf conf = new SparkConf(false);
    for (int i = 0; i < settings.length; i += 2) {
      conf.set(settings[i], settings[i + 1]);
    }
    return RowBlocks.why(conf);
  }

  @Test
  void settingsThatAllowThem() {
    assertNull(why());
    assertNull(why("spark.io.compression.codec", "LZ4"));
    assertNull(why("spark.io.compression.codec", RowsCodec.class.getName()));
    assertNull(why("spark.io.compression.lz4.blockSize", "64k"));
    assertNull(why("spark.io.compression.codec", "zstd"));
    assertNull(why("spark.io.compression.codec", ZstdRowsCodec.class.getName()));
    // It is of no account for zstd.
    assertNull(why("spark.io.compression.codec", "zstd", "spark.io.compression.lz4.blockSize", "1m"));
  }

  @Test
  void settingsWithoutThem() {
    assertEquals("spark.shuffle.compress is false", why("spark.shuffle.compress", "false"));
    assertEquals("spark.io.compression.codec is snappy and neither lz4 nor zstd",
        why("spark.io.compression.codec", "snappy"));
    assertEquals("spark.io.compression.codec is a.b.Codec and neither lz4 nor zstd",
        why("spark.io.compression.codec", "a.b.Codec"));
    assertEquals("spark.io.compression.lz4.blockSize is 131072 bytes; row blocks have at most 65536",
        why("spark.io.compression.lz4.blockSize", "128k"));
  }

  @Test
  void theyAreOnByDefault() {
    assertEquals(true, FaroKeys.ROW_BLOCKS.of(new SparkConf(false)));
  }

  /** Where they are off, nothing is looked at or changed: there is no environment here. */
  @Test
  void theyCanBeTurnedOff() {
    SparkConf conf = new SparkConf(false).set(FaroKeys.ROW_BLOCKS.name, "false");
    assertFalse(new RowBlocks(conf, FaroKeys.ROW_BLOCKS.of(conf)).allowed());
  }
}
