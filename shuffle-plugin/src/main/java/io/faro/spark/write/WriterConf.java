package io.faro.spark.write;

import io.faro.Nullable;
import io.faro.rows.RowCodec;
import io.faro.spark.conf.SparkSettings;
import io.faro.spark.conf.SpillLimits;
import org.apache.spark.SparkConf;
import org.apache.spark.network.util.ByteUnit;

/** Spark's settings of a shuffle's writers. */
final class WriterConf {
  /** Maximum size of the buffers of one writer, before their rows are compressed. */
  static final long MAX_BUFFER_BYTES = 32L << 20;
  /** Spark's page is about a 16th to an 8th of a task's share of memory. */
  private static final int PAGES = 4;
  /** zstd has no blocks; this is about what its frames need to compress as well as Spark's stream. */
  private static final int FRAME_BYTES = 128 << 10;
  private static final int PLAIN_BYTES = 64 << 10;

  final boolean wanted;
  /** Null if it is not one that native code compresses. */
  @Nullable final RowCodec codec;
  final boolean encrypted;
  /** True if files are forced to the disk before they are used. */
  final boolean sync;
  /** Null if map outputs have no checksums. */
  @Nullable final String checksum;
  final int zstdLevel;
  /** Bytes that one block holds before it is compressed: a multiple of 8. */
  final int blockBytes;
  /** Bytes of a buffer of Spark's writer for few partitions. */
  private final long fileBufferBytes;
  final SpillLimits limits;

  /** {@code wanted}: {@code spark.faro.writer} is auto. */
  WriterConf(SparkConf conf, boolean wanted) {
    this.wanted = wanted;
    codec = !SparkSettings.flag(conf, "spark.shuffle.compress", true)
        ? RowCodec.NONE : RowCodec.named(SparkSettings.text(conf, "spark.io.compression.codec", "lz4"));
    encrypted = SparkSettings.flag(conf, "spark.io.encryption.enabled", false);
    checksum = SparkSettings.flag(conf, "spark.shuffle.checksum.enabled", true)
        ? SparkSettings.text(conf, "spark.shuffle.checksum.algorithm", "ADLER32") : null;
    sync = SparkSettings.flag(conf, "spark.shuffle.sync", false);
    zstdLevel = SparkSettings.count(conf, "spark.io.compression.zstd.level", 1);
    long block = codec == RowCodec.LZ4
        ? SparkSettings.bytes(conf, "spark.io.compression.lz4.blockSize", ByteUnit.BYTE, 32 << 10)
        : codec == RowCodec.ZSTD ? FRAME_BYTES : PLAIN_BYTES;
    long max = Math.min(MAX_BUFFER_BYTES, block) / Long.BYTES * Long.BYTES;
    blockBytes = (int) Math.max(BufferSizes.MIN_ROOM, max);
    fileBufferBytes = SparkSettings.bytes(conf, "spark.shuffle.file.buffer", ByteUnit.KiB, 32 << 10);
    limits = new SpillLimits(conf);
  }

  /**
   * The same for a writer that may pack, whose scratch in native memory is some times this. A row block loses little by
   * being shorter than the frames of zstd.
   */
  int blockBytes(boolean packs) {
    return packs ? Math.min(blockBytes, RowWriters.MAX_PACKED_BYTES) : blockBytes;
  }

  /** Maximum bytes of one task's buffers: less where tasks have little memory, by Spark's size of a page. */
  long maxBytes(long pageBytes) {
    return Math.min(MAX_BUFFER_BYTES, PAGES * pageBytes);
  }

  /**
   * The same where Spark's writer for few partitions would write: no more than it has for each of them, a buffer of its
   * file and a codec's two.
   */
  long maxBytesOfFew(int partitions, long pageBytes) {
    long each = fileBufferBytes + (codec == RowCodec.NONE ? 0 : 2L * blockBytes);
    return Math.min(maxBytes(pageBytes), partitions * each);
  }
}
