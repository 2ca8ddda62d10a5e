package io.faro.spark.ui;

import io.faro.Nullable;
import io.faro.spark.metrics.Report;
import io.faro.spark.metrics.Reporter;
import io.faro.spark.metrics.SortCounters;
import java.util.Collections;
import java.util.Map;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import org.apache.spark.SparkEnv;
import org.apache.spark.rpc.RpcEndpointRef;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.ui.SparkUI;
import org.apache.spark.util.RpcUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;

/**
 * Collects the figures of all executors in the driver. Opened at the first shuffle by the shuffle manager, which Spark
 * makes before its UI, or by the plug-in when the application starts. The first report after the first shuffle attaches
 * the tab, so that an application without shuffles has none. A failure here costs the tab and one line in the log,
 * never the job.
 */
public final class FaroUi {
  private static final Logger LOG = LoggerFactory.getLogger(FaroUi.class);

  private final SparkContext context;
  private final SparkEnv env;
  private final FigureStore store;
  private final Totals totals = new Totals();
  private final Collector collector;
  private final FetchWaits waits = new FetchWaits();
  private final AtomicBoolean attached = new AtomicBoolean();
  private final AtomicBoolean logged = new AtomicBoolean();
  private final ScheduledThreadPoolExecutor timer;
  private RpcEndpointRef endpoint;
  /** Sorts that the driver's plans left to Spark, as last reported, and the number of reports. Guarded by this. */
  private Map<String, Long> plans = Collections.emptyMap();
  private long plansReported;

  private FaroUi(SparkContext context) {
    this.context = context;
    this.env = context.env();
    this.store = new FigureStore(context.statusStore().store());
    // Half of the time after which Spark's RPC drops an answer.
    long maxPace = RpcUtils.askRpcTimeout(env.conf()).duration().toNanos() / 2;
    this.collector = new Collector(store, context.listenerBus()::post, System::nanoTime, maxPace, totals,
        waits::queryOf, waits::isSparks, new StatusLog(LOG, System::nanoTime));
    this.timer = new ScheduledThreadPoolExecutor(1, work -> {
      Thread thread = new Thread(work, "faro-ui");
      thread.setDaemon(true);
      return thread;
    });
  }

  /** Opens the tab of the active context, like {@link #open}. */
  public static FaroUi ofActiveContext() {
    Option<SparkContext> active = SparkContext$.MODULE$.getActive();
    return active.isEmpty() ? null : open(active.get());
  }

  /** Null in local mode, or if it failed, which is logged. */
  @Nullable public static FaroUi open(SparkContext context) {
    try {
      if (context.isLocal()) {
        LOG.info("Faro: local mode has one process and no executors that fetch from each other, so Faro has nothing to "
            + "deliver; --master local-cluster[2,1,1024] shows it on one host");
        return null;
      }
      FaroUi ui = new FaroUi(context);
      ui.start();
      return ui;
    } catch (Exception | LinkageError e) {
      LOG.info("Faro: no figures in the Spark UI and the event log, because this Spark refused them: {}",
          e.toString());
      LOG.debug("Faro: no figures in the Spark UI", e);
      return null;
    }
  }

  /** Faro has no part in a shuffle. */
  public void leftToSpark(int shuffle) {
    waits.leftToSpark(shuffle);
  }

  private void start() {
    context.addSparkListener(new Listener());
    env.metricsSystem().registerSource(totals);
    endpoint = env.rpcEnv().setupEndpoint(Reporter.DRIVER_ENDPOINT, new DriverRpcEndpoint(env.rpcEnv(), this::take));
    timer.scheduleWithFixedDelay(() -> guarded(this::tick), 1, 1, TimeUnit.SECONDS);
  }

  private void take(byte[] report, Runnable answer) throws Exception {
    collector.take(Report.decode(report), System.currentTimeMillis(), answer);
    if (waits.sawShuffle() && attached.compareAndSet(false, true)) {
      timer.execute(() -> guarded(this::attach));
    }
  }

  private void tick() throws Exception {
    takePlans();
    collector.tick();
  }

  /** The driver's own counters are a report too. */
  private synchronized void takePlans() throws Exception {
    Map<String, Long> now = SortCounters.ofPlans();
    if (!now.equals(plans)) {
      plans = now;
      Report report = new Report();
      report.executor = ExecutorStates.DRIVER;
      report.host = env.blockManager().blockManagerId().host();
      report.number = ++plansReported;
      report.counters = now;
      collector.take(report, System.currentTimeMillis(), null);
    }
  }

  private void attach() {
    Option<SparkUI> ui = context.ui();
    if (!ui.isEmpty()) {
      FaroTab.attach(ui.get(), store, true);
    }
  }

  private interface Step {
    void run() throws Exception;
  }

  private void guarded(Step step) {
    try {
      step.run();
    } catch (Exception | LinkageError e) {
      if (logged.compareAndSet(false, true)) {
        LOG.info("Faro: the figures in the Spark UI and the event log are incomplete: {}", e.toString());
      }
      LOG.debug("Faro: the figures are not complete", e);
    }
  }

  /** Ends with the application. */
  public void stop() {
    timer.shutdownNow();
    guarded(collector::ended);
    guarded(() -> {
      env.metricsSystem().removeSource(totals);
      env.rpcEnv().stop(endpoint);
    });
  }

  private final class Listener extends SparkListener {
    @Override
    public void onJobStart(SparkListenerJobStart job) {
      guarded(() -> waits.jobStarted(job));
    }

    @Override
    public void onStageCompleted(SparkListenerStageCompleted stage) {
      guarded(() -> collector.waited(waits.ofStage(stage.stageInfo())));
      try {
        timer.schedule(() -> guarded(collector::ask), collector.stageEnded(), TimeUnit.NANOSECONDS);
      } catch (RejectedExecutionException e) {
        LOG.trace("A stage ended after the application had", e);
      }
    }

    @Override
    public void onExecutorRemoved(SparkListenerExecutorRemoved executor) {
      guarded(() -> collector.removed(executor.executorId()));
    }

    @Override
    public void onApplicationEnd(SparkListenerApplicationEnd end) {
      guarded(FaroUi.this::takePlans);
      guarded(collector::ending);
    }
  }
}
