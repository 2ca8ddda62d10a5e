package io.faro.spark.ui;

import io.faro.Nullable;
import io.faro.spark.metrics.Report;
import io.faro.spark.metrics.Traffic;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.IntPredicate;
import java.util.function.IntToLongFunction;
import java.util.function.LongSupplier;
import org.apache.spark.scheduler.SparkListenerEvent;

/**
 * The driver's side of the tab, without its threads: takes reports, sets their rate, and writes the event log.
 *
 * <p>The answer to a report requests the next one (see {@code Reporter}). It is sent {@link #PACE_NANOS} after the
 * report, later if many executors report, and at once at the end of a stage. The event log gets an executor, a shuffle
 * or a node service that has changed at most once in {@link #LOG_NANOS}, and all at the end of the application. So the
 * application's duration bounds the log's size, not its traffic.
 */
final class Collector {
  static final long PACE_NANOS = TimeUnit.SECONDS.toNanos(2);
  /** Added for each executor: 1,000 executors report every 22 s. */
  static final long PACE_PER_EXECUTOR_NANOS = TimeUnit.MILLISECONDS.toNanos(20);
  static final long LOG_NANOS = TimeUnit.SECONDS.toNanos(30);
  /** Stages that end within this time cause one request for reports. */
  static final long STAGE_NANOS = TimeUnit.MILLISECONDS.toNanos(250);
  /** The last report of an executor may come after Spark has removed it. */
  static final long SUMMARY_NANOS = TimeUnit.SECONDS.toNanos(5);
  /** Summaries at the end of the application; those of executors that ended before it are in the log. */
  private static final int MAX_SUMMARIES = 200;

  private final FigureStore store;
  private final Consumer<SparkListenerEvent> log;
  private final LongSupplier nanos;
  private final long maxPaceNanos;
  private final Totals totals;
  private final IntToLongFunction queryOf;
  private final IntPredicate isSparks;
  private final StatusLog status;
  private final Map<String, WaitingAnswer> waiting = new HashMap<>();
  /** Includes executors that ended: their last report may come after that. */
  private final Map<String, KnownExecutor> executors = new LinkedHashMap<>();
  private final Map<Integer, ShuffleFigures> shuffles = new LinkedHashMap<>();
  /** By host. */
  private final Map<String, ServiceFigures> services = new LinkedHashMap<>();
  /** Figures that are not yet in the event log, by {@code e<executor>}, {@code s<shuffle>} or {@code n<host>}. */
  private final Map<String, SparkListenerEvent> unlogged = new LinkedHashMap<>();
  private final Map<String, Long> logged = new HashMap<>();
  private long lastAsked;
  private boolean ending;

  private static final class KnownExecutor {
    /** The number of the last report taken, and when it came. */
    long number;
    long reported;
    /** When Spark removed the executor, if it did. */
    long removed;
    boolean summarised;
    ExecutorFigures figures;
  }

  private static final class WaitingAnswer {
    final Runnable answer;
    final long since;

    WaitingAnswer(Runnable answer, long since) {
      this.answer = answer;
      this.since = since;
    }
  }

  /**
   * {@code log} posts an event; {@code maxPaceNanos}: Spark's RPC drops an answer that takes longer; {@code queryOf}
   * finds the query of a shuffle, {@code isSparks} whether Faro has no part in it.
   */
  Collector(FigureStore store, Consumer<SparkListenerEvent> log, LongSupplier nanos, long maxPaceNanos,
      Totals totals, IntToLongFunction queryOf, IntPredicate isSparks, StatusLog status) {
    this.store = store;
    this.log = log;
    this.nanos = nanos;
    this.maxPaceNanos = maxPaceNanos;
    this.totals = totals;
    this.queryOf = queryOf;
    this.isSparks = isSparks;
    this.status = status;
    this.lastAsked = nanos.getAsLong() - STAGE_NANOS;
  }

  /** {@code answer}, run once, requests the executor's next report; null if the executor does not wait. */
  synchronized void take(Report report, long timeMillis, @Nullable Runnable answer) throws Exception {
    KnownExecutor known = executors.get(report.executor);
    if (known == null) {
      known = new KnownExecutor();
      makeRoom();
      executors.put(report.executor, known);
    }
    if (report.number > known.number) {
      known.number = report.number;
      known.reported = nanos.getAsLong();
      apply(report, known, timeMillis);
    }
    if (answer != null) {
      // A new question replaces one that the executor no longer waits for.
      waiting.put(report.executor, new WaitingAnswer(answer, nanos.getAsLong()));
    }
  }

  private void makeRoom() {
    if (executors.size() >= FigureStore.MAX_EXECUTORS) {
      Iterator<KnownExecutor> old = executors.values().iterator();
      while (old.hasNext()) {
        ExecutorFigures figures = old.next().figures;
        if (figures == null || figures.removed) {
          old.remove();
          return;
        }
      }
    }
  }

  private void apply(Report report, KnownExecutor known, long timeMillis) throws Exception {
    for (Map.Entry<Integer, Map<String, Long>> more : report.shuffles.entrySet()) {
      add(more.getKey(), more.getValue());
    }
    for (Map.Entry<String, Map<String, Long>> more : report.services.entrySet()) {
      addService(more.getKey(), more.getValue());
    }
    if (!report.counters.isEmpty() || known.figures == null || !report.problem.equals(known.figures.problem)) {
      boolean changed = !report.counters.isEmpty() || known.figures == null;
      ExecutorFigures figures = new ExecutorFigures();
      figures.executor = report.executor;
      figures.host = report.host;
      figures.time = timeMillis;
      figures.removed = known.figures != null && known.figures.removed;
      figures.problem = report.problem;
      figures.counters = changed ? new TreeMap<>(report.counters) : known.figures.counters;
      figures.peers = changed ? report.peers : known.figures.peers;
      totals.replace(known.figures, figures);
      put(known, figures);
    }
    if (ending) {
      writeLog(0);
    }
  }

  /** Adds the time that tasks waited for shuffles, by shuffle, in nanoseconds. */
  synchronized void waited(Map<Integer, Long> nanosOfShuffles) throws Exception {
    for (Map.Entry<Integer, Long> shuffle : nanosOfShuffles.entrySet()) {
      // A wait of nothing makes no row for a shuffle of which nothing was remote.
      if (shuffle.getValue() > 0 || shuffles.containsKey(shuffle.getKey()) || isSparks.test(shuffle.getKey())) {
        add(shuffle.getKey(), Collections.singletonMap(Traffic.TASK_WAIT, shuffle.getValue()));
      }
    }
  }

  private void add(int shuffle, Map<String, Long> more) throws Exception {
    ShuffleFigures before = shuffles.get(shuffle);
    if (before == null) {
      before = new ShuffleFigures();
      before.shuffle = shuffle;
      if (shuffles.size() >= FigureStore.MAX_SHUFFLES) {
        Integer oldest = shuffles.keySet().iterator().next();
        shuffles.remove(oldest);
        logged.remove("s" + oldest);
      }
    }
    ShuffleFigures sum = before.plus(more);
    if (sum.query == ShuffleFigures.NO_QUERY) {
      // A report can be here before the event that its job has started.
      sum.query = queryOf.applyAsLong(shuffle);
    }
    sum.sparks = isSparks.test(shuffle);
    shuffles.put(shuffle, sum);
    unlogged.put("s" + shuffle, sum);
    store.put(sum);
  }

  private void addService(String host, Map<String, Long> more) throws Exception {
    ServiceFigures before = services.get(host);
    if (before == null) {
      before = new ServiceFigures();
      before.host = host;
      if (services.size() >= FigureStore.MAX_SERVICES) {
        String oldest = services.keySet().iterator().next();
        services.remove(oldest);
        logged.remove("n" + oldest);
      }
    }
    ServiceFigures sum = before.plus(more);
    services.put(host, sum);
    unlogged.put("n" + host, sum);
    store.put(sum);
  }

  private void put(KnownExecutor known, ExecutorFigures figures) throws Exception {
    known.figures = figures;
    unlogged.put("e" + figures.executor, figures);
    store.put(figures);
  }

  /** Spark has removed an executor. */
  synchronized void removed(String executor) throws Exception {
    // Not answered: the connection is closed, and Spark's RPC would log an error.
    waiting.remove(executor);
    KnownExecutor known = executors.get(executor);
    if (known != null && known.figures != null && !known.figures.removed) {
      totals.removed(known.figures);
      known.removed = nanos.getAsLong();
      put(known, known.figures.asRemoved());
      writeLog("e" + executor);
      logged.remove("e" + executor);
    }
  }

  /** A stage is over; the caller calls {@link #ask} after this delay, in nanoseconds, for its figures. */
  synchronized long stageEnded() {
    return Math.max(0, lastAsked + STAGE_NANOS - nanos.getAsLong());
  }

  /** Requests the figures of all executors. */
  synchronized void ask() {
    lastAsked = nanos.getAsLong();
    List<WaitingAnswer> all = new ArrayList<>(waiting.values());
    waiting.clear();
    all.forEach(one -> one.answer.run());
  }

  /** Called about once a second. */
  synchronized void tick() {
    long pace = Math.min(maxPaceNanos, PACE_NANOS + waiting.size() * PACE_PER_EXECUTOR_NANOS);
    long now = nanos.getAsLong();
    List<Runnable> due = new ArrayList<>();
    waiting.values().removeIf(one -> now - one.since >= pace && due.add(one.answer));
    due.forEach(Runnable::run);
    writeLog(LOG_NANOS);
    if (!ending) {
      status.tick(figures(), totals::sum);
    }
    for (KnownExecutor known : executors.values()) {
      if (known.figures != null && known.figures.removed && now - known.removed >= SUMMARY_NANOS) {
        summarise(known, now);
      }
    }
  }

  /** The application ends: writes all figures to the event log now, and later ones when they come. */
  synchronized void ending() {
    // Before Spark stops executors one by one.
    status.end(figures(), totals::sum);
    ending = true;
    writeLog(0);
  }

  /** The application has ended, and with it all executors: the log gets their last figures. */
  synchronized void ended() {
    long now = nanos.getAsLong();
    executors.values().stream().filter(known -> known.figures != null && !known.summarised).limit(MAX_SUMMARIES)
        .forEach(known -> summarise(known, now));
  }

  private Collection<ExecutorFigures> figures() {
    List<ExecutorFigures> all = new ArrayList<>(executors.size());
    for (KnownExecutor known : executors.values()) {
      if (known.figures != null) {
        all.add(known.figures);
      }
    }
    return all;
  }

  private void summarise(KnownExecutor known, long now) {
    if (!known.summarised && !known.figures.executor.equals(ExecutorStates.DRIVER)) {
      known.summarised = true;
      long end = known.figures.removed ? known.removed : now;
      status.summary(known.figures, Math.max(0, end - known.reported));
    }
  }

  private void writeLog(long pause) {
    long now = nanos.getAsLong();
    for (String key : new ArrayList<>(unlogged.keySet())) {
      Long last = logged.get(key);
      if (last == null || now - last >= pause) {
        writeLog(key);
      }
    }
  }

  private void writeLog(String key) {
    SparkListenerEvent event = unlogged.remove(key);
    if (event != null) {
      logged.put(key, nanos.getAsLong());
      log.accept(event);
    }
  }
}
