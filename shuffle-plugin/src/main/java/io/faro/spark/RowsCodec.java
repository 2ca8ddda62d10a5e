package io.faro.spark;

import io.faro.spark.codec.BlockInputStream;
import java.io.InputStream;
import org.apache.spark.SparkConf;
import org.apache.spark.io.LZ4CompressionCodec;

/**
 * A value of {@code spark.io.compression.codec}: Spark's lz4 that can also read Faro's row blocks
 * (docs/design/row-block-format.md), in plain Java. What it writes is plain lz4, so broadcasts, spills, checkpoints
 * and cached
 * blocks do not change. It extends Spark's codec because Spark asks by class whether streams can be joined.
 */
public final class RowsCodec extends LZ4CompressionCodec {
  /** Spark makes codecs by this constructor. */
  public RowsCodec(SparkConf conf) {
    super(conf);
  }

  @Override
  public InputStream compressedInputStream(InputStream in) {
    return new BlockInputStream(in);
  }
}
