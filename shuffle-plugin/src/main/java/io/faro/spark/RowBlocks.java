package io.faro.spark;

import io.faro.Nullable;
import io.faro.rows.RowCodec;
import io.faro.spark.conf.FaroKeys;
import io.faro.spark.conf.SparkSettings;
import io.faro.spark.write.RowWriters;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.network.util.ByteUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Decides whether map outputs of this executor may have row blocks ({@code spark.faro.rowBlocks}): where all readers of
 * the application know them. Faro's do; Spark's do with the codec that this gives to Spark. The executors of an
 * application have the same settings and the same Spark, so what this executor finds holds for the others.
 */
final class RowBlocks {
  private static final Logger LOG = LoggerFactory.getLogger(RowBlocks.class);

  private final SparkConf conf;
  private final boolean wanted;
  private volatile State state = State.UNKNOWN;

  /** State of the decision for this executor. */
  private enum State {
    UNKNOWN, ALLOWED, REFUSED
  }

  /** {@code wanted}: the setting is true, and this is an executor of an application with Faro. */
  RowBlocks(SparkConf conf, boolean wanted) {
    this.conf = conf;
    this.wanted = wanted;
  }

  /**
   * Returns whether they may be written. The first call gives Spark's readers the codec, so it must be made before this
   * process has a reader of a shuffle that may have row blocks. Spark's environment must be there.
   */
  boolean allowed() {
    if (wanted && state == State.UNKNOWN) {
      look();
    }
    return state == State.ALLOWED;
  }

  private synchronized void look() {
    if (state != State.UNKNOWN) {
      return;
    }
    String why = why(conf);
    if (why == null) {
      SparkEnv env = SparkEnv.get();
      why = why(SparkCodec.install(env.serializerManager(), conf));
    }
    if (why == null) {
      state = State.ALLOWED;
      LOG.debug("Faro writes row blocks");
    } else {
      state = State.REFUSED;
      if (conf.contains(FaroKeys.ROW_BLOCKS.name)) {
        LOG.warn("Faro writes no row blocks although {} is true: {}", FaroKeys.ROW_BLOCKS.name, why);
      } else {
        LOG.info("Faro writes no row blocks: {}", why);
      }
    }
  }

  /** Returns why there are none with these settings; null if they do not forbid it. */
  @Nullable static String why(SparkConf conf) {
    String codec = SparkSettings.text(conf, "spark.io.compression.codec", "lz4");
    RowCodec known = RowCodec.named(codec);
    long block = SparkSettings.bytes(conf, "spark.io.compression.lz4.blockSize", ByteUnit.BYTE, 32 << 10);
    if (!SparkSettings.flag(conf, "spark.shuffle.compress", true)) {
      return "spark.shuffle.compress is false";
    } else if (known != RowCodec.LZ4 && known != RowCodec.ZSTD) {
      return "spark.io.compression.codec is " + codec + " and neither lz4 nor zstd";
    } else if (known == RowCodec.LZ4 && block > RowWriters.MAX_PACKED_BYTES) {
      return "spark.io.compression.lz4.blockSize is " + block + " bytes; row blocks have at most "
          + RowWriters.MAX_PACKED_BYTES;
    }
    return null;
  }

  private static String why(SparkCodec.Outcome outcome) {
    switch (outcome) {
      case INSTALLED:
      case THERE_ALREADY:
        return null;
      case OTHER_CODEC:
        return "Spark's codec is neither lz4 nor zstd";
      case NO_ACCESS:
        return "this Spark does not let Faro give its reader a codec";
      default:
        throw new IllegalStateException("unknown outcome " + outcome);
    }
  }
}
