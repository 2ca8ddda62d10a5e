package io.faro.spark.conf;

import org.apache.spark.SparkConf;
import org.apache.spark.network.util.ByteUnit;

/** Spark's settings that make a writer or a sort spill although there is memory. */
public final class SpillLimits {
  public static final SpillLimits NONE = new SpillLimits(Long.MAX_VALUE, Long.MAX_VALUE);

  private final long rows;
  private final long bytes;

  public SpillLimits(SparkConf conf) {
    this(SparkSettings.count(conf, "spark.shuffle.spill.numElementsForceSpillThreshold", Integer.MAX_VALUE),
        SparkSettings.bytes(
            conf, "spark.shuffle.spill.maxSizeInBytesForSpillThreshold", ByteUnit.BYTE, Long.MAX_VALUE));
  }

  public SpillLimits(long rows, long bytes) {
    this.rows = rows;
    this.bytes = bytes;
  }

  /** Returns whether so many rows, and bytes of rows, in memory are enough. */
  public boolean reached(long rowsInMemory, long bytesInMemory) {
    return rowsInMemory >= rows || bytesInMemory >= bytes;
  }
}
