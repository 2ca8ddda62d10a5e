package io.faro.spark.write;

import io.faro.Nullable;
import io.faro.StagedOutput;
import io.faro.spark.conf.OncePerKey;
import io.faro.spark.metrics.WriterDeclineReason;
import java.lang.reflect.Field;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.LongConsumer;
import java.util.function.Supplier;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.TaskContext;
import org.apache.spark.serializer.Serializer;
import org.apache.spark.shuffle.BaseShuffleHandle;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import org.apache.spark.shuffle.ShuffleHandle;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.shuffle.sort.BypassMergeSortShuffleHandle;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Makes the writers of one executor, for shuffles that Faro writes itself. */
public final class RowWriters {
  /** The longest block that may become a row block: docs/user/memory.md has 1 MiB for a task's compressor. */
  public static final int MAX_PACKED_BYTES = 64 << 10;

  private static final Logger LOG = LoggerFactory.getLogger(RowWriters.class);
  private static final String ROW_SERIALIZER = "org.apache.spark.sql.execution.UnsafeRowSerializer";

  final WriterConf conf;
  private final Supplier<StagedOutput> stage;
  private final Runnable rowWriters;
  private final Consumer<WriterDeclineReason> declined;
  private final OncePerKey logged = new OncePerKey();
  private final BooleanSupplier packs;
  private final LongConsumer rowBlocks;
  private volatile Field dataSize;
  private volatile Field numFields;

  /** The same without row blocks. */
  public RowWriters(SparkConf conf, boolean wanted, Supplier<StagedOutput> stage, Runnable rowWriters,
      Consumer<WriterDeclineReason> declined) {
    this(conf, wanted, () -> false, stage, rowWriters, declined, blocks -> { });
  }

  /**
   * {@code wanted}: {@code spark.faro.writer} is auto; {@code packs}: whether all readers know row blocks; {@code
   * stage}: gives what takes a data file's bytes, or {@code null}; the last three count writers and row blocks.
   */
  public RowWriters(SparkConf conf, boolean wanted, BooleanSupplier packs, Supplier<StagedOutput> stage,
      Runnable rowWriters, Consumer<WriterDeclineReason> declined, LongConsumer rowBlocks) {
    this.conf = new WriterConf(conf, wanted);
    this.packs = packs;
    this.rowBlocks = rowBlocks;
    this.stage = stage;
    this.rowWriters = rowWriters;
    this.declined = declined;
  }

  /** A writer of rows; null if Spark's own is to be used. */
  @Nullable public <K, V> RowShuffleWriter<K, V> writer(ShuffleHandle handle, long mapId, TaskContext context,
      ShuffleWriteMetricsReporter metrics, IndexShuffleBlockResolver resolver) {
    @SuppressWarnings("unchecked")
    ShuffleDependency<K, V, ?> dependency = ((BaseShuffleHandle<K, V, ?>) handle).dependency();
    WriterDeclineReason why = why(dependency, context);
    SQLMetric size = null;
    if (why == null) {
      try {
        size = dataSize(dependency.serializer());
      } catch (ReflectiveOperationException | RuntimeException e) {
        LOG.debug("The metric of the data's size is not in {}", dependency.serializer(), e);
        why = WriterDeclineReason.NO_ACCESS;
      }
    }
    if (why != null) {
      declined.accept(why);
      if (logged.of(why)) {
        LOG.info("Faro leaves shuffle {} to Spark's own writer: {}. Further shuffles with this reason are not logged; "
            + "the counter sparkWriters.{} has the number of tasks", handle.shuffleId(), why.text, why.key);
      } else {
        LOG.debug("Faro leaves shuffle {} to Spark's own writer: {}", handle.shuffleId(), why.text);
      }
      return null;
    }
    rowWriters.run();
    int packed = packs.getAsBoolean() ? fields(dependency.serializer()) : RowShuffleWriter.NOT_PACKED;
    boolean few = handle instanceof BypassMergeSortShuffleHandle;
    return new RowShuffleWriter<>(
        conf, dependency, mapId, size, packed, few, context, metrics, resolver, stage, rowBlocks);
  }

  /** Returns why Spark's own writer is to be used; null if it is not. */
  @Nullable private WriterDeclineReason why(ShuffleDependency<?, ?, ?> dependency, TaskContext context) {
    if (!conf.wanted) {
      return WriterDeclineReason.SETTING;
    } else if (!dependency.serializer().getClass().getName().equals(ROW_SERIALIZER)) {
      return WriterDeclineReason.SERIALIZER;
    } else if (dependency.mapSideCombine() || dependency.keyOrdering().isDefined()) {
      return WriterDeclineReason.AGGREGATION;
    } else if (conf.encrypted) {
      return WriterDeclineReason.ENCRYPTION;
    } else if (conf.codec == null) {
      return WriterDeclineReason.CODEC;
    } else if (!PartitionSums.knows(conf.checksum)) {
      return WriterDeclineReason.CHECKSUM;
    } else if (!PartitionLimit.allows(
        dependency.partitioner().numPartitions(), conf, context.taskMemoryManager().pageSizeBytes())) {
      return WriterDeclineReason.PARTITIONS;
    } else if (!MapStatuses.available() || !RowSums.available()) {
      return WriterDeclineReason.NO_ACCESS;
    }
    return null;
  }

  /** The metric that adaptive execution takes its statistics from; null if the shuffle has none. */
  @Nullable private SQLMetric dataSize(Serializer serializer) throws ReflectiveOperationException {
    Field field = dataSize;
    if (field == null) {
      field = field(serializer, "dataSize");
      dataSize = field;
    }
    return (SQLMetric) field.get(serializer);
  }

  /** The columns of its rows, for row blocks; {@link RowShuffleWriter#NOT_PACKED}: not to be found. */
  private int fields(Serializer serializer) {
    try {
      Field field = numFields;
      if (field == null) {
        field = field(serializer, "numFields");
        numFields = field;
      }
      return field.getInt(serializer);
    } catch (ReflectiveOperationException | RuntimeException e) {
      LOG.debug("The number of columns is not in {}", serializer, e);
      return RowShuffleWriter.NOT_PACKED;
    }
  }

  private static Field field(Serializer serializer, String name) throws ReflectiveOperationException {
    Field field = serializer.getClass().getDeclaredField(name);
    field.setAccessible(true);
    return field;
  }
}
