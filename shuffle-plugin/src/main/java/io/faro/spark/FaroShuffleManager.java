package io.faro.spark;

import io.faro.Endpoint;
import io.faro.spark.rows.RowReaders;
import io.faro.spark.ui.FaroUi;
import io.faro.spark.write.RowShuffleWriter;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import org.apache.spark.shuffle.ShuffleHandle;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.shuffle.sort.SortShuffleManager;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The class for {@code spark.shuffle.manager}. Spark does everything about a shuffle (writers, files, readers,
 * migration, merging), except the transfer of blocks between executors. This class extends Spark's manager and does not
 * implement its interface itself: so one jar runs on every Spark version, and Spark SQL keeps its fast path.
 *
 * <p>An executor opens its endpoint at its start, as soon as the block manager is there: on Spark 3 this object exists
 * before that. Later can be too late: an executor that is being decommissioned cannot publish a card any more. The
 * driver, and so local mode, opens nothing.
 */
public final class FaroShuffleManager extends SortShuffleManager {
  private static final Logger LOG = LoggerFactory.getLogger(FaroShuffleManager.class);
  /** How long the start of an executor may take; after that the first shuffle task opens the endpoint. */
  private static final long START_SECONDS = 120;
  private static final long START_PAUSE_MILLIS = 50;

  private final SparkConf sparkConf;
  private final FaroConf faroConf;
  /** Whether this process may have an endpoint; null in the constructor of the superclass, which calls methods here. */
  private final Boolean mayRun;
  /** By shuffle: the map outputs of Faro's writers; Spark's manager knows those of its own. */
  private final Map<Integer, Set<Long>> written = new ConcurrentHashMap<>();
  /** Guarded by this. */
  private UiState uiState;
  /** In OPENED; null if Spark refused it. */
  private FaroUi ui;
  /**
   * The executor's endpoint and client: {@code null} while the executor starts, then what it became. Completed with
   * {@code null}: stopped before it was opened.
   */
  private volatile CompletableFuture<FaroExecutor> opening;

  /** The states of the driver's tab. */
  private enum UiState {
    /** An executor, unsupported settings, or stopped. */
    OFF,
    /** The first shuffle opens it. */
    READY,
    OPENED
  }

  public FaroShuffleManager(SparkConf conf, boolean isDriver) {
    super(conf);
    sparkConf = conf;
    faroConf = new FaroConf(conf);
    List<String> unsupported = UnsupportedSettings.of(conf);
    if (!unsupported.isEmpty()) {
      if (faroConf.never) {
        throw UnsupportedSettings.contradiction(unsupported);
      }
      LOG.warn(UnsupportedSettings.warning(unsupported));
    }
    if (isDriver) {
      FaroConf.unknownKeys(conf).forEach(
          (key, nearest) -> LOG.warn("Faro ignores the unknown key {}; did you mean {}?", key, nearest));
    }
    uiState = isDriver && unsupported.isEmpty() ? UiState.READY : UiState.OFF;
    mayRun = !isDriver && unsupported.isEmpty();
    if (mayRun) {
      Threads.daemon("faro-start", this::openWhenReady).start();
    }
  }

  /** Waits for the block manager: Spark has no call that says when it has started. */
  private synchronized void openWhenReady() {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(START_SECONDS);
    try {
      while (opening == null && System.nanoTime() - end < 0) {
        if (envIsReady()) {
          open();
          return;
        }
        wait(START_PAUSE_MILLIS);
      }
    } catch (InterruptedException e) {
      LOG.debug("The first shuffle task opens Faro's endpoint", e);
    }
  }

  @Override
  public <K, V, C> ShuffleHandle registerShuffle(int shuffleId, ShuffleDependency<K, V, C> dependency) {
    synchronized (this) {
      if (uiState == UiState.READY) {
        uiState = UiState.OPENED;
        ui = FaroUi.open();
      }
    }
    return super.registerShuffle(shuffleId, dependency);
  }

  @Override
  public <K, V> ShuffleWriter<K, V> getWriter(
      ShuffleHandle handle, long mapId, TaskContext context, ShuffleWriteMetricsReporter metrics) {
    // Opened before the output exists: a peer that learns of the output then finds this executor's card.
    FaroExecutor open = awaitOpen();
    RowShuffleWriter<K, V> rows = open == null
        ? null : open.writers().writer(handle, mapId, context, metrics, super.shuffleBlockResolver());
    if (rows != null) {
      written.computeIfAbsent(handle.shuffleId(), id -> ConcurrentHashMap.newKeySet()).add(mapId);
    }
    ShuffleWriter<K, V> writer = rows == null ? super.getWriter(handle, mapId, context, metrics) : rows;
    if (open == null || !faroConf.wantsCommits) {
      return writer;
    }
    return new CommittingWriter<>(
        writer, () -> open.committed(handle.shuffleId(), mapId, rows == null ? null : rows.staged()));
  }

  @Override
  public <K, C> ShuffleReader<K, C> getReader(ShuffleHandle handle, int startMapIndex, int endMapIndex,
      int startPartition, int endPartition, TaskContext context, ShuffleReadMetricsReporter metrics) {
    FaroExecutor open = awaitOpen();
    if (open != null) {
      install(open);
      RowReaders readers = open.readers();
      ShuffleReader<K, C> reader = readers == null ? null : readers.reader(
          handle, startMapIndex, endMapIndex, startPartition, endPartition, context, metrics);
      if (reader != null) {
        return reader;
      }
    }
    return super.getReader(handle, startMapIndex, endMapIndex, startPartition, endPartition, context, metrics);
  }

  /** Spark calls this to serve, store or migrate shuffle blocks; an executor may get its first blocks by migration. */
  @Override
  public IndexShuffleBlockResolver shuffleBlockResolver() {
    if (mayRun != null && mayRun && envIsReady()) {
      open().thenAccept(open -> {
        if (open != null) {
          open.used();
        }
      });
    }
    return super.shuffleBlockResolver();
  }

  @Override
  public boolean unregisterShuffle(int shuffleId) {
    FaroExecutor open = openExecutor();
    if (open == null) {
      return super.unregisterShuffle(shuffleId);
    }
    open.forgetShuffle(shuffleId);
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
    CompletableFuture<FaroExecutor> last;
    synchronized (this) {
      last = opening;
      if (opening == null) {
        opening = CompletableFuture.completedFuture(null);
        notifyAll();
      }
      if (uiState == UiState.OPENED && ui != null) {
        ui.stop();
      }
      uiState = UiState.OFF;
    }
    if (last != null) {
      // An executor that is still being opened is stopped after that.
      last.thenAccept(open -> {
        if (open != null) {
          open.stop();
        }
      });
    }
    super.stop();
  }

  private static boolean envIsReady() {
    SparkEnv env = SparkEnv.get();
    return env != null && env.blockManager() != null && env.blockManager().blockManagerId() != null;
  }

  private CompletableFuture<FaroExecutor> open() {
    CompletableFuture<FaroExecutor> started = opening;
    return started == null ? openOnce() : started;
  }

  private synchronized CompletableFuture<FaroExecutor> openOnce() {
    if (opening == null) {
      CompletableFuture<FaroExecutor> result = new CompletableFuture<>();
      opening = result;
      Threads.daemon("faro-start", () -> openInto(result)).start();
    }
    return opening;
  }

  private void openInto(CompletableFuture<FaroExecutor> result) {
    try {
      result.complete(FaroExecutor.open(LOG, sparkConf, faroConf, super::shuffleBlockResolver));
    } catch (Throwable e) {
      if (processEnds()) {
        LOG.debug("Faro is not started in a process that ends", e);
        result.complete(null);
        return;
      }
      if (!faroConf.never) {
        LOG.warn("Faro could not start, Spark's own fetch delivers all blocks: {}", e.toString());
      }
      LOG.debug("Faro could not start", e);
      result.completeExceptionally(e);
    }
  }

  private static boolean processEnds() {
    Thread probe = new Thread();
    try {
      Runtime.getRuntime().addShutdownHook(probe);
      Runtime.getRuntime().removeShutdownHook(probe);
      return false;
    } catch (IllegalStateException e) {
      return true;
    }
  }

  /** Does not wait; {@code null}: it is not open (yet). */
  private FaroExecutor openExecutor() {
    CompletableFuture<FaroExecutor> started = opening;
    return started == null || !started.isDone() || started.isCompletedExceptionally() ? null : started.join();
  }

  /** The open executor; {@code null}: there is none, and Spark's own fetch delivers all blocks. */
  private FaroExecutor awaitOpen() {
    if (!mayRun) {
      return null;
    }
    try {
      FaroExecutor open = open().get(faroConf.requestTimeoutMillis, TimeUnit.MILLISECONDS);
      if (open != null) {
        open.used();
      }
      return open;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("the task was interrupted while Faro started", e);
    } catch (ExecutionException e) {
      return unlessNever("Faro could not start: " + e.getCause(), e.getCause());
    } catch (TimeoutException e) {
      return unlessNever("Faro has not started within " + faroConf.requestTimeoutMillis + " ms", e);
    }
  }

  /** This executor's endpoint, for uses other than shuffles. */
  Endpoint endpoint() {
    if (!mayRun) {
      List<String> unsupported = UnsupportedSettings.of(sparkConf);
      throw new IllegalStateException("Faro has no endpoint here: "
          + (unsupported.isEmpty() ? "this is the driver, or local mode"
              : "it does not support " + String.join(", ", unsupported)));
    }
    FaroExecutor open = awaitOpen();
    if (open == null) {
      throw new IllegalStateException("Faro has no endpoint here: it could not start, see this executor's log");
    }
    return open.endpoint();
  }

  private void install(FaroExecutor open) {
    try {
      open.install();
    } catch (ReflectiveOperationException | RuntimeException e) {
      LOG.warn("Faro serves blocks but cannot fetch, because this Java or Spark refuses access to "
          + "BlockManager.blockStoreClient ({}); Spark's own fetch delivers all blocks to this executor", e.toString());
      unlessNever("Faro cannot replace Spark's block client: " + e, e);
    }
  }

  private FaroExecutor unlessNever(String problem, Throwable cause) {
    if (faroConf.never) {
      throw new IllegalStateException(problem + "; spark.faro.fallback=never does not allow Spark's own fetch", cause);
    }
    return null;
  }
}
