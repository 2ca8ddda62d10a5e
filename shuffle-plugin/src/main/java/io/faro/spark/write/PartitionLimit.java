package io.faro.spark.write;

import io.faro.rows.RowCodec;

/** Decides for how many partitions Faro's writer is used: each of them needs a buffer of a useful size. */
final class PartitionLimit {
  /**
   * With smaller buffers files would become markedly larger than Spark's. Measured with 10 million narrow rows in one
   * task: lz4 makes them a tenth larger with blocks of 8 KiB, a fifth larger with blocks of 2 KiB, and the writer takes
   * less than half of the CPU of Spark's with both. Frames of zstd lose more by being short.
   */
  private static final int MIN_BLOCK_BYTES = 2 << 10;
  private static final int MIN_FRAME_BYTES = 8 << 10;

  private PartitionLimit() {}

  /** Returns whether that many partitions are supported; {@code pageBytes}: Spark's size of a page. */
  static boolean allows(int partitions, WriterConf conf, long pageBytes) {
    int min = conf.codec == RowCodec.ZSTD ? MIN_FRAME_BYTES : MIN_BLOCK_BYTES;
    return partitions <= conf.maxBytes(pageBytes) / Math.min(conf.blockBytes, min);
  }
}
