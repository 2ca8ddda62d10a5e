package io.faro.spark.write;

import io.faro.rows.RowCodec;
import org.apache.spark.SparkConf;
import org.apache.spark.memory.TaskMemoryManager;

/** Spark's settings of a shuffle's writers. */
final class WriterConf {
  /** What the buffers of one writer take at most, before their rows are compressed. */
  static final long MOST_BUFFER_BYTES = 32L << 20;
  /** With smaller buffers than this, blocks would be compressed markedly worse than Spark's. */
  private static final int LEAST_BLOCK_BYTES = 8 << 10;
  /** zstd has no blocks; this is about what its frames need to compress as well as Spark's stream. */
  private static final int FRAME_BYTES = 128 << 10;
  private static final int PLAIN_BYTES = 64 << 10;
  private static final String LOCAL_DISK = "org.apache.spark.shuffle.sort.io.LocalDiskShuffleDataIO";

  final boolean wanted;
  /** {@code null}: not one that native code compresses. */
  final RowCodec codec;
  final boolean encrypted;
  /** {@code null}: map outputs have no checksums. */
  final String checksum;
  final int zstdLevel;
  /** What one compressed block holds, before it is compressed: a multiple of 8. */
  final int blockBytes;
  /** The data files are where Spark's own code for local disks puts them. */
  final boolean localDisk;
  final SpillLimits limits;

  /** {@code wanted}: {@code spark.faro.writer} is auto. */
  WriterConf(SparkConf conf, boolean wanted) {
    this.wanted = wanted;
    codec = !conf.getBoolean("spark.shuffle.compress", true)
        ? RowCodec.NONE : RowCodec.named(conf.get("spark.io.compression.codec", "lz4"));
    encrypted = conf.getBoolean("spark.io.encryption.enabled", false);
    checksum = conf.getBoolean("spark.shuffle.checksum.enabled", true)
        ? conf.get("spark.shuffle.checksum.algorithm", "ADLER32") : null;
    zstdLevel = conf.getInt("spark.io.compression.zstd.level", 1);
    long block = codec == RowCodec.LZ4
        ? conf.getSizeAsBytes("spark.io.compression.lz4.blockSize", "32k")
        : codec == RowCodec.ZSTD ? FRAME_BYTES : PLAIN_BYTES;
    long most = Math.min(MOST_BUFFER_BYTES, block) / Long.BYTES * Long.BYTES;
    blockBytes = (int) Math.max(PartitionBuffers.LEAST_ROOM, most);
    localDisk = conf.get("spark.shuffle.sort.io.plugin.class", LOCAL_DISK).equals(LOCAL_DISK);
    limits = new SpillLimits(conf);
  }

  /** What the buffers of one task take at most: less where the executor's tasks have little memory. */
  long mostBytes(TaskMemoryManager memory) {
    return Math.min(MOST_BUFFER_BYTES, 4 * memory.pageSizeBytes());
  }

  /** Whether so many partitions have buffers of a useful size. */
  boolean holds(int partitions) {
    return partitions <= MOST_BUFFER_BYTES / Math.min(blockBytes, LEAST_BLOCK_BYTES);
  }
}
