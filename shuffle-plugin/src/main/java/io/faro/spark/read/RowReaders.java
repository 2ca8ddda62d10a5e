package io.faro.spark.read;

import static java.util.stream.Collectors.toSet;

import io.faro.Endpoint;
import io.faro.Nullable;
import io.faro.spark.conf.OncePerKey;
import io.faro.spark.metrics.ReaderDeclineReason;
import io.faro.spark.read.groups.PartClient;
import io.faro.spark.read.groups.ReaderConf;
import io.faro.spark.read.places.BlockPlaces;
import io.faro.spark.read.places.BlockSizes;
import io.faro.spark.read.places.HostDirectories;
import io.faro.spark.read.places.LoanClient;
import io.faro.spark.read.places.LocalFiles.OutputFinder;
import io.faro.spark.read.places.Parts;
import io.faro.spark.read.places.ReadPlan;
import io.faro.spark.read.records.GroupedReader;
import io.faro.spark.read.records.KeySorting;
import io.faro.spark.read.rows.RowShuffleReader;
import io.faro.spark.read.groups.ReaderContext;
import io.faro.spark.read.records.Decompression;
import java.lang.reflect.Field;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import org.apache.spark.MapOutputTracker;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.serializer.Serializer;
import org.apache.spark.shuffle.BaseShuffleHandle;
import org.apache.spark.shuffle.ShuffleHandle;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.shuffle.sort.SortShuffleManager;
import org.apache.spark.storage.BlockManagerId;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Makes the readers of one executor, for shuffles that Faro reads itself. */
public final class RowReaders {
  private static final Logger LOG = LoggerFactory.getLogger(RowReaders.class);
  private static final String ROW_SERIALIZER = "org.apache.spark.sql.execution.UnsafeRowSerializer";

  private final ReaderConf conf;
  private final ReaderContext shared;
  private final HostLocalSwitch hostLocal;
  /** Compressed blocks, one after the other, are one compressed stream. */
  private final boolean concatenates;
  private final Runnable rowReaders;
  private final Runnable groupedReaders;
  private final Consumer<ReaderDeclineReason> declined;
  private final OncePerKey logged = new OncePerKey();
  private volatile Field numFields;

  /** {@code wanted}: {@code spark.faro.reader} is auto; the last three count readers. */
  public RowReaders(SparkConf conf, boolean wanted, PartClient client, Endpoint endpoint, OutputFinder outputs,
      LoanClient lender, Runnable rowReaders, Runnable groupedReaders, Consumer<ReaderDeclineReason> declined) {
    this.conf = new ReaderConf(conf, wanted);
    HostDirectories directories = new HostDirectories();
    shared = new ReaderContext(this.conf, client, endpoint, outputs, lender, directories);
    hostLocal = new HostLocalSwitch(directories);
    concatenates = this.conf.codec != null || Decompression.canJoinStreams(conf);
    this.rowReaders = rowReaders;
    this.groupedReaders = groupedReaders;
    this.declined = declined;
  }

  /** A reader; null if Spark's own reader is to be used. */
  @Nullable public <K, C> ShuffleReader<K, C> reader(ShuffleHandle handle, int startMapIndex, int endMapIndex,
      int startPartition, int endPartition, TaskContext context, ShuffleReadMetricsReporter metrics) {
    ShuffleDependency<?, ?, ?> dependency = ((BaseShuffleHandle<?, ?, ?>) handle).dependency();
    ReaderDeclineReason why = why(dependency);
    int fields = why == null ? fields(dependency) : -1;
    if (why == null && fields < 0) {
      why = whyNotGrouped(dependency);
    }
    if (why != null) {
      declined.accept(why);
      if (logged.of(why)) {
        LOG.info("Faro leaves shuffle {} to Spark's own reader: {}. Further shuffles with this reason are not logged; "
            + "the counter sparkReaders.{} has the number of tasks", handle.shuffleId(), why.text, why.key);
      } else {
        LOG.debug("Faro leaves shuffle {} to Spark's own reader: {}", handle.shuffleId(), why.text);
      }
      return null;
    }
    MapOutputTracker tracker = SparkEnv.get().mapOutputTracker();
    boolean merge = SortShuffleManager.canUseBatchFetch(startPartition, endPartition, context);
    Map<BlockManagerId, Parts> blocks = BlockSizes.of(
        tracker, handle.shuffleId(), startMapIndex, endMapIndex, startPartition, endPartition, merge);
    Set<String> near = shared.lender.near(blocks.keySet().stream().map(BlockManagerId::executorId).collect(toSet()));
    ReadPlan plan = ReadPlan.of(handle.shuffleId(), blocks,
        new BlockPlaces(SparkEnv.get().blockManager(), context, shared.directories, shared.lender, near),
        conf.limits());
    if (fields < 0) {
      groupedReaders.run();
      return new GroupedReader<>(shared, plan, dependency, context, metrics);
    }
    rowReaders.run();
    return new RowShuffleReader<>(shared, plan, fields, context, metrics);
  }

  /** Spark's own reader of the shuffle, made able to read from executors of this host whose files it cannot see. */
  public <K, C> ShuffleReader<K, C> spark(
      ShuffleReader<K, C> reader, ShuffleHandle handle, int startMapIndex, int endMapIndex, TaskContext context) {
    // Blocks that push-based shuffle merged can be read only with the setting as it is.
    if (!HostDirectories.wanted(SparkEnv.get().blockManager())
        || ((BaseShuffleHandle<?, ?, ?>) handle).dependency().isShuffleMergeFinalizedMarked()) {
      return reader;
    }
    return hostLocal.guard(reader,
        BlockSizes.locations(SparkEnv.get().mapOutputTracker(), handle.shuffleId(), startMapIndex, endMapIndex),
        context);
  }

  /** Returns the reason that rules out every reader of Faro's, or null. */
  @Nullable private ReaderDeclineReason why(ShuffleDependency<?, ?, ?> dependency) {
    if (!conf.wanted) {
      return ReaderDeclineReason.SETTING;
    } else if (conf.encrypted) {
      return ReaderDeclineReason.ENCRYPTION;
    } else if (conf.oldProtocol) {
      return ReaderDeclineReason.OLD_PROTOCOL;
    } else if (dependency.isShuffleMergeFinalizedMarked()) {
      return ReaderDeclineReason.PUSH_MERGED;
    }
    return null;
  }

  /** Returns the reason that parts cannot be read as one stream, or null. */
  @Nullable private ReaderDeclineReason whyNotGrouped(ShuffleDependency<?, ?, ?> dependency) {
    if (!concatenates) {
      return ReaderDeclineReason.CODEC;
    } else if (!dependency.serializer().supportsRelocationOfSerializedObjects()) {
      return ReaderDeclineReason.SERIALIZER;
    } else if (dependency.keyOrdering().isDefined() && !KeySorting.available()) {
      return ReaderDeclineReason.NO_ACCESS;
    }
    return null;
  }

  /** The columns of rows that native code can decode; -1: it cannot. */
  private int fields(ShuffleDependency<?, ?, ?> dependency) {
    boolean rows = dependency.serializer().getClass().getName().equals(ROW_SERIALIZER)
        && conf.codec != null && dependency.aggregator().isEmpty() && dependency.keyOrdering().isEmpty();
    return rows ? fields(dependency.serializer()) : -1;
  }

  /** The columns of the serializer's rows; -1: not to be found. */
  private int fields(Serializer serializer) {
    try {
      Field field = numFields;
      if (field == null) {
        field = serializer.getClass().getDeclaredField("numFields");
        field.setAccessible(true);
        numFields = field;
      }
      return field.getInt(serializer);
    } catch (ReflectiveOperationException | RuntimeException e) {
      LOG.debug("The number of columns is not in {}", serializer, e);
      return -1;
    }
  }
}
