package io.faro.spark;

import io.faro.spark.codec.FrameInputStream;
import java.io.InputStream;
import org.apache.spark.SparkConf;
import org.apache.spark.io.ZStdCompressionCodec;

/**
 * A value of {@code spark.io.compression.codec}: Spark's zstd that can also read Faro's row blocks, as
 * {@link RowsCodec} is for lz4. What it writes is plain zstd, and frames are decompressed by Spark's own class, with
 * its settings.
 */
public final class ZstdRowsCodec extends ZStdCompressionCodec {
  /** Spark makes codecs by this constructor. */
  public ZstdRowsCodec(SparkConf conf) {
    super(conf);
  }

  @Override
  public InputStream compressedInputStream(InputStream in) {
    return new FrameInputStream(in, super::compressedInputStream);
  }
}
