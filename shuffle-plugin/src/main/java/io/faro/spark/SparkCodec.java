package io.faro.spark;

import io.faro.Nullable;
import java.lang.reflect.Field;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.io.CompressionCodec;
import org.apache.spark.io.CompressionCodec$;
import org.apache.spark.io.LZ4CompressionCodec;
import org.apache.spark.io.ZStdCompressionCodec;
import org.apache.spark.serializer.SerializerManager;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Gives Spark's own reader of this process a codec that reads row blocks, without a setting: Spark has one codec for
 * blocks in each process, makes it when it first needs it and keeps it in a field of its serializer manager.
 *
 * <p>The application's conf stays as it is. By it Spark makes further codecs, by the class's name and the current
 * thread's class loader, for broadcasts, for the rows that a query returns and for checkpoints. Those need no row
 * blocks, and a thread with the system's class loader would not find a class that came with {@code --jars}.
 */
final class SparkCodec {
  private static final Logger LOG = LoggerFactory.getLogger(SparkCodec.class);
  /** The same from Spark 3.4 to 4.3: the value of a lazy one, and whether it was made. */
  private static final String CODEC = "compressionCodec";
  private static final String MADE = "bitmap$0";

  private SparkCodec() {}

  /** Result of replacing the codec; only with the first two Spark's reader can read row blocks. */
  enum Outcome {
    INSTALLED,
    /** The application's codec is one of Faro's by its setting, or it was installed before. */
    THERE_ALREADY,
    /** The application's codec is neither lz4 nor zstd. */
    OTHER_CODEC,
    /** This Spark does not have these fields, or does not let them be set. */
    NO_ACCESS
  }

  /** Idempotent. Afterwards readers that are made on this thread have the codec. */
  static Outcome install(SerializerManager manager, SparkConf conf) {
    synchronized (manager) {
      // Spark makes its codec under the same lock.
      try {
        Field codec = field(CODEC);
        Field made = field(MADE);
        CompressionCodec now = made.getBoolean(manager)
            ? (CompressionCodec) codec.get(manager) : CompressionCodec$.MODULE$.createCodec(conf);
        if (now instanceof RowsCodec || now instanceof ZstdRowsCodec) {
          return Outcome.THERE_ALREADY;
        }
        CompressionCodec faros = codecFor(now, conf);
        if (faros == null) {
          return Outcome.OTHER_CODEC;
        }
        // The second one is volatile: a thread that sees it sees the first one.
        codec.set(manager, faros);
        made.setBoolean(manager, true);
        return Outcome.INSTALLED;
      } catch (ReflectiveOperationException | RuntimeException e) {
        LOG.debug("Spark's codec cannot be replaced", e);
        return Outcome.NO_ACCESS;
      }
    }
  }

  /** The codec that reads what that one does and row blocks; null if there is none. */
  @Nullable private static CompressionCodec codecFor(CompressionCodec sparks, SparkConf conf) {
    if (sparks.getClass() == LZ4CompressionCodec.class) {
      return new RowsCodec(conf);
    }
    return sparks.getClass() == ZStdCompressionCodec.class ? new ZstdRowsCodec(conf) : null;
  }

  /** The same for this process, whose environment must be there. */
  static Outcome install() {
    SparkEnv env = SparkEnv.get();
    return install(env.serializerManager(), env.conf());
  }

  private static Field field(String name) throws ReflectiveOperationException {
    Field field = SerializerManager.class.getDeclaredField(name);
    field.setAccessible(true);
    return field;
  }
}
