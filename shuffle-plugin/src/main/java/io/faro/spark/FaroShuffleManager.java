package io.faro.spark;

import io.faro.Nullable;
import io.faro.spark.conf.ChannelSecurity;
import io.faro.spark.conf.UnsupportedSettings;
import io.faro.spark.read.RowReaders;
import io.faro.spark.service.NodeServicesHolder;
import io.faro.spark.ui.FaroUi;
import io.faro.spark.write.CommittingWriter;
import io.faro.spark.write.RowShuffleWriter;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.BaseShuffleHandle;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import org.apache.spark.shuffle.ShuffleHandle;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.shuffle.sort.SortShuffleManager;

/**
 * The class for {@code spark.shuffle.manager}. Spark does everything about a shuffle (writers, files, readers,
 * migration, merging), except the transfer of blocks between executors. This class extends Spark's manager and does not
 * implement its interface itself: so one jar runs on every Spark version, and Spark SQL keeps its fast path.
 *
 * <p>On Spark 3 this object exists before the block manager, which the endpoint needs.
 */
public final class FaroShuffleManager extends SortShuffleManager {
  /** Null in the constructor of the superclass, which calls methods here. */
  private final FaroProcess process;
  /** The map outputs of Faro's writers, by shuffle; Spark's manager knows those of its own. */
  private final Map<Integer, Set<Long>> written = new ConcurrentHashMap<>();
  private final Object components = new Object();
  /** True once Spark's executor components are initialized. */
  private volatile boolean initialized;
  /** The ids of shuffles that {@code spark.faro.enabled=false} leaves to Spark, as far as tasks read them here. */
  private final Set<Integer> sparks = ConcurrentHashMap.newKeySet();
  /** Null in an executor. */
  @Nullable private final SessionToggle choice;
  /** Guarded by this. */
  private UiState uiState;
  /** The tab once the state is OPENED; null if Spark refused it. */
  private FaroUi ui;

  private enum UiState {
    /** An executor, unsupported settings, or stopped. */
    OFF,
    /** The first shuffle opens it. */
    READY,
    OPENED
  }

  public FaroShuffleManager(SparkConf conf, boolean isDriver) {
    super(conf);
    process = new FaroProcess(conf, isDriver, UnsupportedSettings.of(conf), super::shuffleBlockResolver,
        sparks::contains);
    choice = isDriver ? new SessionToggle(process.conf.enabled, process.conf.security.forbidsSparksFetch) : null;
    if (isDriver && !process.isOff()) {
      ExecutorClassPath.check(conf);
      SqlExtensions.configure(conf);
      if (process.conf.serviceDirectory != null) {
        OutlivingOutputs.configure(conf);
      }
    }
    uiState = isDriver && !process.isOff() ? UiState.READY : UiState.OFF;
    if (process.mayRun) {
      process.openWhenReady();
    }
  }

  @Override
  public <K, V, C> ShuffleHandle registerShuffle(int shuffleId, ShuffleDependency<K, V, C> dependency) {
    FaroUi tab;
    synchronized (this) {
      if (uiState == UiState.READY) {
        uiState = UiState.OPENED;
        ui = FaroUi.ofActiveContext();
      }
      tab = ui;
    }
    if (!process.isOff()) {
      SortExecutors.look();
    }
    ShuffleHandle handle = super.registerShuffle(shuffleId, dependency);
    boolean leaves = choice != null && choice.leaves(shuffleId);
    if (leaves && tab != null) {
      tab.leftToSpark(shuffleId);
    }
    NodeServicesHolder.registered(shuffleId, leaves);
    return leaves ? SparkShuffleHandles.of(handle) : handle;
  }

  @Override
  public <K, V> ShuffleWriter<K, V> getWriter(
      ShuffleHandle handle, long mapId, TaskContext context, ShuffleWriteMetricsReporter metrics) {
    if (SparkShuffleHandles.has(handle)) {
      return super.getWriter(handle, mapId, context, metrics);
    }
    // Opened before the output exists: a peer that learns of the output then finds this executor's card.
    FaroExecutor open = awaitOpen();
    RowShuffleWriter<K, V> rows = open == null
        ? null : open.writers().writer(handle, mapId, context, metrics, super.shuffleBlockResolver());
    if (rows != null) {
      initializeComponents(handle, mapId, context, metrics);
      written.computeIfAbsent(handle.shuffleId(), id -> ConcurrentHashMap.newKeySet()).add(mapId);
    }
    ShuffleWriter<K, V> writer = rows == null ? super.getWriter(handle, mapId, context, metrics) : rows;
    if (open == null) {
      return process.missesService()
          ? new CommittingWriter<>(writer, () -> process.notKept(handle.shuffleId(), mapId)) : writer;
    }
    if (!process.conf.wantsCommits) {
      return writer;
    }
    return new CommittingWriter<>(
        writer, () -> open.committed(handle.shuffleId(), mapId, rows == null ? null : rows.staged()));
  }

  /**
   * Lets Spark make and initialise its executor's components ({@code spark.shuffle.sort.io.plugin.class}), which its
   * manager does when it makes its first writer. Those of Kubernetes recover the files of an executor that was here
   * before. The writer that comes of it is one for any dependency, and holds nothing.
   */
  private void initializeComponents(
      ShuffleHandle handle, long mapId, TaskContext context, ShuffleWriteMetricsReporter metrics) {
    if (!initialized) {
      synchronized (components) {
        if (!initialized) {
          super.getWriter(new BaseShuffleHandle<>(
              handle.shuffleId(), ((BaseShuffleHandle<?, ?, ?>) handle).dependency()), mapId, context, metrics);
          initialized = true;
        }
      }
    }
  }

  @Override
  public <K, C> ShuffleReader<K, C> getReader(ShuffleHandle handle, int startMapIndex, int endMapIndex,
      int startPartition, int endPartition, TaskContext context, ShuffleReadMetricsReporter metrics) {
    if (SparkShuffleHandles.has(handle)) {
      // Before the reader is there: the block client asks for it.
      sparks.add(handle.shuffleId());
      return super.getReader(handle, startMapIndex, endMapIndex, startPartition, endPartition, context, metrics);
    }
    // Before there is a reader, of Spark's or of Faro's, and also where native code is not: other executors may write
    // row blocks.
    process.rowBlocks.allowed();
    FaroExecutor open = awaitOpen();
    if (open == null && process.mayRun && process.conf.security.forbidsSparksFetch) {
      throw new IllegalStateException("Faro is not open in this executor, which ends; " + ChannelSecurity.FORBIDDEN);
    }
    RowReaders readers = null;
    if (open != null) {
      process.install(open);
      readers = open.readers();
      ShuffleReader<K, C> reader = readers == null ? null : readers.reader(
          handle, startMapIndex, endMapIndex, startPartition, endPartition, context, metrics);
      if (reader != null) {
        return reader;
      }
    }
    ShuffleReader<K, C> spark =
        super.getReader(handle, startMapIndex, endMapIndex, startPartition, endPartition, context, metrics);
    return readers == null ? spark : readers.spark(spark, handle, startMapIndex, endMapIndex, context);
  }

  /** Spark calls this to serve, store or migrate shuffle blocks; an executor may get its first blocks by migration. */
  @Override
  public IndexShuffleBlockResolver shuffleBlockResolver() {
    if (process != null && process.mayRun && FaroProcess.envIsReady()) {
      process.open().thenAccept(open -> {
        if (open != null) {
          open.used();
        }
      });
    }
    return super.shuffleBlockResolver();
  }

  @Override
  public boolean unregisterShuffle(int shuffleId) {
    sparks.remove(shuffleId);
    FaroExecutor open = process.ifOpen();
    if (open == null) {
      process.forgetNotKept(shuffleId);
      return super.unregisterShuffle(shuffleId);
    }
    open.forgetShuffle(shuffleId);
    open.serviceForgets(shuffleId);
    try {
      Set<Long> outputs = written.remove(shuffleId);
      if (outputs != null) {
        outputs.forEach(mapId -> super.shuffleBlockResolver().removeDataByMap(shuffleId, mapId));
      }
      return super.unregisterShuffle(shuffleId);
    } finally {
      // A peer's question between the two has opened files that are deleted now, and would keep their disk space.
      open.forgetShuffle(shuffleId);
    }
  }

  @Override
  public void stop() {
    synchronized (this) {
      if (uiState == UiState.OPENED && ui != null) {
        ui.stop();
      }
      uiState = UiState.OFF;
    }
    process.stop();
    super.stop();
  }

  /** The open executor, in use from now on; null if there is none. */
  @Nullable private FaroExecutor awaitOpen() {
    FaroExecutor open = process.awaitOpen();
    if (open != null) {
      open.used();
    }
    return open;
  }
}
