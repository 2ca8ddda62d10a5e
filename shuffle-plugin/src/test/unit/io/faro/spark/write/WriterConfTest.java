package io.faro.spark.write;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.rows.RowCodec;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

class WriterConfTest {
  private static WriterConf with(String... settings) {
    SparkConf conf = new SparkConf(false);
    for (int i = 0; i < settings.length; i += 2) {
      conf.set(settings[i], settings[i + 1]);
    }
    return new WriterConf(conf, true);
  }

  private static int lz4Block(String size) {
    return with("spark.io.compression.lz4.blockSize", size).blockBytes;
  }

  @Test
  void sparksDefaults() {
    WriterConf conf = with();
    assertEquals(RowCodec.LZ4, conf.codec);
    assertEquals(32 << 10, conf.blockBytes);
    assertEquals("ADLER32", conf.checksum);
    assertEquals(1, conf.zstdLevel);
    assertFalse(conf.encrypted);
  }

  @Test
  void sparksSpellings() {
    assertEquals("CRC32", with("spark.shuffle.checksum.algorithm", "crc32").checksum);
    assertTrue(with("spark.shuffle.sync", "TRUE").sync);
    assertFalse(with().sync);
  }

  /** Buffers, whose bytes a block holds, are multiples of 8 between 64 bytes and 32 MiB. */
  @Test
  void blockSizesOfLz4() {
    assertEquals(64, lz4Block("1b"));
    assertEquals(200, lz4Block("200b"));
    assertEquals(1000, lz4Block("1007b"));
    assertEquals(32 << 20, lz4Block("32m"));
    assertEquals(32 << 20, lz4Block("3g"));
  }

  @Test
  void blocksThatMayBePacked() {
    assertEquals(32 << 10, with().blockBytes(true));
    WriterConf zstd = with("spark.io.compression.codec", "zstd");
    assertEquals(128 << 10, zstd.blockBytes(false));
    assertEquals(64 << 10, zstd.blockBytes(true));
  }

  @Test
  void partitionsThatHaveBuffersOfAUsefulSize() {
    assertMost(16_384, with(), 64 << 20);
    assertMost(4_096, with("spark.io.compression.codec", "zstd"), 64 << 20);
    // Tasks with little memory.
    assertMost(2_048, with(), 1 << 20);
    assertMost((int) (WriterConf.MAX_BUFFER_BYTES / BufferSizes.MIN_ROOM),
        with("spark.io.compression.lz4.blockSize", "64b"), 64 << 20);
  }

  private static void assertMost(int partitions, WriterConf conf, long pageBytes) {
    assertTrue(PartitionLimit.allows(partitions, conf, pageBytes));
    assertFalse(PartitionLimit.allows(partitions + 1, conf, pageBytes));
  }

  @Test
  void codecs() {
    assertEquals(RowCodec.NONE, with("spark.shuffle.compress", "false", "spark.io.compression.codec", "lzf").codec);
    assertEquals(RowCodec.ZSTD, with("spark.io.compression.codec", "zstd").codec);
    assertEquals(RowCodec.LZ4, with("spark.io.compression.codec", "io.faro.spark.RowsCodec").codec);
    assertNull(with("spark.io.compression.codec", "snappy").codec);
    assertNull(with("spark.shuffle.checksum.enabled", "false").checksum);
  }
}
