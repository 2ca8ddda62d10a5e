package io.faro.spark.metrics;

import java.io.IOException;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.apache.spark.SparkEnv;
import org.apache.spark.rpc.RpcEndpointRef;
import org.apache.spark.util.RpcUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * The executor's side of the tab: sends reports to the driver, one at a time, on a thread of its own. The driver sets
 * the rate: it delays the answer to a report until it wants the next one, at the end of a stage or after a few seconds.
 * So the driver limits its own load with a thousand executors, and has the figures of a stage when the stage ends. A
 * report is empty if nothing has changed. If the driver does not answer, reports become rarer and then stop; the job is
 * not affected.
 */
public final class Reporter {
  /** Name of the driver's endpoint in Spark's RPC. */
  public static final String DRIVER_ENDPOINT = "faro-figures";
  private static final Logger LOG = LoggerFactory.getLogger(Reporter.class);
  /** Reports end after this many failures in a row; the pauses between them add up to two minutes. */
  static final int MAX_FAILURES = 8;
  private static final long FIRST_PAUSE_MILLIS = 1_000;

  /** The driver's side. */
  interface Driver {
    /** Sends a report and returns when the driver wants the next one. */
    void ask(byte[] report) throws Exception;

    /** Sends a report and does not wait. */
    void tell(byte[] report) throws Exception;
  }

  /** Finds the driver; may take long and fail. */
  interface Finder {
    Driver find() throws Exception;
  }

  private final String executor;
  private final String host;
  private final Supplier<Map<String, Long>> counters;
  private final Supplier<String> problem;
  private final Traffic traffic;
  private final Finder finder;
  private final long firstPauseMillis;
  private final Thread thread;
  private Map<String, Long> reported;
  private long number;
  private volatile Driver driver;
  private volatile boolean stopped;

  Reporter(String executor, String host, Supplier<Map<String, Long>> counters, Supplier<String> problem,
      Traffic traffic, Finder finder, long firstPauseMillis) {
    this.executor = executor;
    this.host = host;
    this.counters = counters;
    this.problem = problem;
    this.traffic = traffic;
    this.finder = finder;
    this.firstPauseMillis = firstPauseMillis;
    this.thread = new Thread(this::run, "faro-report");
    // Not that of the task which starts it.
    this.thread.setContextClassLoader(Reporter.class.getClassLoader());
    this.thread.setDaemon(true);
  }

  /** Starts the thread. {@code problem}: why Faro does not run here; empty: it does. */
  public static Reporter start(
      SparkEnv env, Supplier<Map<String, Long>> counters, Supplier<String> problem, Traffic traffic) {
    String host = env.blockManager().blockManagerId().host();
    Reporter reporter = new Reporter(env.executorId(), host, counters, problem, traffic,
        () -> find(env), FIRST_PAUSE_MILLIS);
    reporter.thread.start();
    return reporter;
  }

  private static Driver find(SparkEnv env) {
    RpcEndpointRef ref = RpcUtils.makeDriverRef(DRIVER_ENDPOINT, env.conf(), env.rpcEnv());
    ClassTag<Boolean> tag = ClassTag$.MODULE$.apply(Boolean.class);
    return new Driver() {
      @Override
      public void ask(byte[] report) {
        ref.askSync(report, tag);
      }

      @Override
      public void tell(byte[] report) {
        ref.send(report);
      }
    };
  }

  void run() {
    byte[] unanswered = null;
    int failures = 0;
    while (!stopped) {
      try {
        if (driver == null) {
          driver = finder.find();
        }
        // The same bytes until they are answered: next() has removed their shuffles from the traffic.
        unanswered = unanswered == null ? next() : unanswered;
        driver.ask(unanswered);
        unanswered = null;
        failures = 0;
      } catch (InterruptedException e) {
        return;
      } catch (Exception e) {
        if (stopped) {
          return;
        }
        LOG.debug("Faro: a report to the driver failed", e);
        if (++failures == MAX_FAILURES) {
          LOG.info("Faro: the driver does not answer reports ({}); its Faro tab will not show this executor",
              e.toString());
          return;
        }
        if (!pause(firstPauseMillis << (failures - 1))) {
          return;
        }
      }
    }
  }

  /** False: interrupted. */
  private synchronized boolean pause(long millis) {
    long end = System.nanoTime() + millis * 1_000_000;
    try {
      for (long left = millis; left > 0 && !stopped; left = (end - System.nanoTime()) / 1_000_000) {
        wait(left);
      }
      return true;
    } catch (InterruptedException e) {
      return false;
    }
  }

  private synchronized byte[] next() throws IOException {
    Report report = new Report();
    report.executor = executor;
    report.host = host;
    report.number = ++number;
    report.problem = problem.get();
    Map<String, Long> now = counters.get();
    report.shuffles = traffic.drainShuffles(Report.MAX_SHUFFLES);
    report.services = traffic.drainServices(Report.MAX_SERVICES);
    // Empty counters stand for unchanged ones. A closed endpoint has only part of them.
    if (!now.equals(reported) && (reported == null || now.keySet().containsAll(reported.keySet()))) {
      for (Map.Entry<String, Long> counter : now.entrySet()) {
        if (report.counters.size() < Report.MAX_COUNTERS) {
          report.counters.put(counter.getKey(), counter.getValue());
        }
      }
      report.peers = traffic.slowest(Report.MAX_PEERS);
      reported = new TreeMap<>(now);
    }
    return report.encode();
  }

  /** Tells the driver the last figures, without waiting for it. To be called while the counters can still be read. */
  public void stop() {
    synchronized (this) {
      if (stopped) {
        return;
      }
      stopped = true;
      notifyAll();
    }
    Driver known = driver;
    if (known != null) {
      try {
        known.tell(next());
      } catch (Exception e) {
        LOG.debug("Faro: the last report to the driver failed", e);
      }
    }
    thread.interrupt();
  }
}
