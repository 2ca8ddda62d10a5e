package io.faro.spark;

import io.faro.Endpoint;
import io.faro.Faro;
import io.faro.FaroException;
import io.faro.Nullable;
import io.faro.spark.conf.ChannelSecurity;
import io.faro.spark.conf.FaroConf;
import io.faro.spark.conf.FaroKeys;
import io.faro.spark.conf.Key;
import io.faro.spark.conf.SparkSettings;
import io.faro.spark.conf.UnsupportedSettings;
import io.faro.spark.fetch.SparkShuffles;
import io.faro.spark.metrics.Reporter;
import io.faro.spark.metrics.Traffic;
import io.faro.spark.service.UnkeptOutputs;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Faro in one process: whether it may run there, and the executor's endpoint, opened once. {@link FaroShuffleManager}
 * and {@link FaroPlugin} are two ways to turn it on, of which one is used.
 *
 * <p>An executor opens its endpoint at its start, as soon as the block manager is there. Later can be too late: an
 * executor that is being decommissioned cannot publish a card any more. The driver, and so local mode, opens nothing.
 */
final class FaroProcess {
  private static final Logger LOG = LoggerFactory.getLogger(FaroProcess.class);
  /** Time that the start of an executor may take; after that the first shuffle task opens the endpoint. */
  private static final long START_SECONDS = 120;
  private static final long START_PAUSE_MILLIS = 50;
  private static final String PUSH = "spark.shuffle.push.enabled";

  /** Null if Faro is not turned on, or has stopped. */
  @Nullable private static volatile FaroProcess current;

  final FaroConf conf;
  /** True if this process may have an endpoint. */
  final boolean mayRun;
  final RowBlocks rowBlocks;
  private final SparkConf sparkConf;
  /** Reason why Faro is off in this executor although the application wants it; null if it is not. */
  @Nullable private final String otherVersion;
  private final List<String> unsupported;
  private final Supplier<IndexShuffleBlockResolver> files;
  private final SparkShuffles sparks;
  /**
   * The executor's endpoint and client: null while the executor starts, then what it became. Completed with
   * null if it was stopped before it was opened.
   */
  @Nullable private volatile CompletableFuture<FaroExecutor> opening;
  /** Null if there are none. Guarded by this. */
  @Nullable private UnkeptOutputs unkept;
  /** Tells the driver that Faro does not run here; null if it does, or no shuffle task asked. Guarded by this. */
  @Nullable private Reporter absence;

  /**
   * Checks the settings, and warns of those that turn Faro off. {@code files} finds map outputs; it is called once
   * there is an endpoint, and may return {@code null}: none can be found. {@code sparks}: the shuffles of which Faro
   * fetches nothing.
   */
  FaroProcess(SparkConf sparkConf, boolean isDriver, List<String> unsupported,
      Supplier<IndexShuffleBlockResolver> files, SparkShuffles sparks) {
    this.sparkConf = sparkConf;
    this.unsupported = unsupported;
    this.files = files;
    this.sparks = sparks;
    conf = new FaroConf(sparkConf);
    boolean forbids = conf.security.forbidsSparksFetch;
    if (forbids) {
      refuse(sparkConf);
      LOG.warn("Faro delivers every remote shuffle block or the task fails: {}", ChannelSecurity.FORBIDDEN);
    }
    if (!conf.enabled) {
      LOG.info("Faro is off in this application: {}=false", FaroKeys.ENABLED.name);
    } else if (!unsupported.isEmpty()) {
      if (conf.never) {
        throw forbids ? UnsupportedSettings.forbidden(unsupported) : UnsupportedSettings.contradiction(unsupported);
      }
      LOG.warn(UnsupportedSettings.warning(unsupported));
    }
    if (isDriver) {
      FaroConf.unknownKeys(sparkConf).forEach(
          (key, nearest) -> LOG.warn("Faro ignores the unknown key {}; did you mean {}?", key, nearest));
      sparkConf.set(FaroKeys.DRIVER_VERSION, Faro.version());
    }
    String copies = isOff() ? null : JarVersions.ofSeveralVersions(Thread.currentThread().getContextClassLoader());
    if (copies != null) {
      LOG.warn("Faro's jar is on the class path in more than one version: {}; the first is used; leave one", copies);
    }
    otherVersion = isDriver || isOff()
        ? null : JarVersions.refusal(sparkConf.get(FaroKeys.DRIVER_VERSION, ""), Faro.version());
    if (otherVersion != null && !conf.never) {
      LOG.warn("Faro is off in this executor, Spark's own fetch delivers all of its blocks: {}", otherVersion);
    }
    mayRun = !isDriver && !isOff() && otherVersion == null;
    // An executor that is off for its version reads row blocks that others write.
    rowBlocks = new RowBlocks(sparkConf, conf.wantsRowBlocks && !isDriver && !isOff());
    current = this;
  }

  /** Throws for settings with which Spark itself would send shuffle blocks in the clear. */
  private static void refuse(SparkConf sparkConf) {
    if (!FaroKeys.ENABLED.of(sparkConf)) {
      throw Key.refused(FaroKeys.ENABLED.name, "false", "true, because " + ChannelSecurity.FORBIDDEN, null);
    }
    if (SparkSettings.flag(sparkConf, PUSH, false)) {
      throw Key.refused(PUSH, "true",
          "false, because push-based shuffle sends blocks in the clear, and " + ChannelSecurity.FORBIDDEN, null);
    }
  }

  /** Null if Faro is not turned on here. */
  @Nullable static FaroProcess current() {
    return current;
  }

  /** Returns whether Faro is off in all of the application because of its settings. */
  boolean isOff() {
    return !conf.enabled || !unsupported.isEmpty();
  }

  /** Opens the endpoint as soon as the block manager is there: Spark has no call that says when it has started. */
  void openWhenReady() {
    Threads.daemon("faro-start", this::awaitEnv).start();
  }

  private synchronized void awaitEnv() {
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

  static boolean envIsReady() {
    SparkEnv env = SparkEnv.get();
    return env != null && env.blockManager() != null && env.blockManager().blockManagerId() != null;
  }

  /** Opens the endpoint, if this is the first call, on a thread of its own. */
  CompletableFuture<FaroExecutor> open() {
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
      result.complete(FaroExecutor.open(LOG, sparkConf, conf, files, sparks, rowBlocks));
    } catch (Throwable e) {
      if (processEnds()) {
        LOG.debug("Faro is not started in a process that ends", e);
        result.complete(null);
        return;
      }
      if (!conf.never) {
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

  /** Does not wait; null if it is not open (yet). */
  @Nullable FaroExecutor ifOpen() {
    CompletableFuture<FaroExecutor> started = opening;
    return started == null || !started.isDone() || started.isCompletedExceptionally() ? null : started.join();
  }

  /** The open executor; null if there is none, and Spark's own fetch delivers all blocks. */
  @Nullable FaroExecutor awaitOpen() {
    if (!mayRun) {
      if (otherVersion == null) {
        return null;
      }
      reportAbsence(otherVersion);
      return unlessNever("Faro is off in this executor: " + otherVersion, null);
    }
    try {
      return open().get(conf.requestTimeoutMillis, TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("the task was interrupted while Faro started", e);
    } catch (ExecutionException e) {
      reportAbsence(why(e.getCause()));
      return unlessNever("Faro could not start: " + e.getCause(), e.getCause());
    } catch (TimeoutException e) {
      return unlessNever("Faro has not started within " + conf.requestTimeoutMillis + " ms", e);
    }
  }

  /** Whether outputs of this executor should be kept by a node service, while Faro is not open here. */
  boolean missesService() {
    return conf.serviceDirectory != null && (mayRun || otherVersion != null);
  }

  /** A map output of this executor, where Faro is not open, was written: it is lost with the executor. */
  void notKept(int shuffleId, long mapId) {
    UnkeptOutputs first;
    synchronized (this) {
      unkept = unkept == null ? new UnkeptOutputs(SparkEnv.get()) : unkept;
      first = unkept;
    }
    first.add(shuffleId, mapId, "Faro does not run in this executor: "
        + (otherVersion == null ? "it could not start" : otherVersion));
  }

  void forgetNotKept(int shuffleId) {
    UnkeptOutputs known;
    synchronized (this) {
      known = unkept;
    }
    if (known != null) {
      known.removed(shuffleId);
    }
  }

  /** Replaces the client of Spark's block manager, once. */
  void install(FaroExecutor open) {
    try {
      open.install();
    } catch (ReflectiveOperationException | RuntimeException e) {
      if (open.readers() == null) {
        open.cannotFetch(
            "it serves blocks but does not fetch, because it cannot replace Spark's block client: " + why(e));
        LOG.warn("Faro serves blocks but does not fetch, because it cannot replace BlockManager.blockStoreClient: {}; "
            + "Spark's own fetch delivers all blocks to this executor", why(e));
      } else {
        LOG.warn("Faro fetches blocks for its own readers only, because this Java does not let it replace the final "
            + "field BlockManager.blockStoreClient: {}. Spark's own fetch delivers what Spark's reader reads. "
            + "From Java 26 on, spark.executor.extraJavaOptions=--enable-final-field-mutation=ALL-UNNAMED allows it",
            why(e));
      }
      unlessNever("Faro cannot replace Spark's block client: " + why(e), e);
    }
  }

  private static String why(Throwable e) {
    boolean speaks = e instanceof IllegalStateException || e instanceof FaroException;
    return speaks && e.getMessage() != null ? e.getMessage() : e.toString();
  }

  /** Tells the driver why Faro does not run in this executor, from its first shuffle task on, as {@code used} does. */
  private synchronized void reportAbsence(String why) {
    if (absence == null && current == this && envIsReady()) {
      absence = Reporter.start(SparkEnv.get(), Collections::emptyMap, () -> why, new Traffic());
    }
  }

  /** Returns null, or throws if a setting does not allow that Spark's own fetch takes over. */
  @Nullable FaroExecutor unlessNever(String problem, Throwable cause) {
    if (conf.never) {
      throw new IllegalStateException(problem + "; " + conf.why(), cause);
    }
    return null;
  }

  /** This executor's endpoint, for uses other than shuffles. */
  Endpoint endpoint() {
    if (!mayRun) {
      throw new IllegalStateException("Faro has no endpoint here: "
          + (otherVersion != null ? otherVersion : !conf.enabled ? FaroKeys.ENABLED.name + " is false"
              : unsupported.isEmpty() ? "this is the driver, or local mode"
              : "it does not support " + String.join(", ", unsupported)));
    }
    FaroExecutor open = awaitOpen();
    if (open == null) {
      throw new IllegalStateException("Faro has no endpoint here: it could not start, see this executor's log");
    }
    open.used();
    return open.endpoint();
  }

  /** An executor that is still being opened is stopped after that. */
  void stop() {
    CompletableFuture<FaroExecutor> last;
    synchronized (this) {
      if (absence != null) {
        absence.stop();
      }
      last = opening;
      if (opening == null) {
        opening = CompletableFuture.completedFuture(null);
        notifyAll();
      }
    }
    if (current == this) {
      current = null;
    }
    if (last != null) {
      last.thenAccept(open -> {
        if (open != null) {
          open.stop();
        }
      });
    }
  }
}
