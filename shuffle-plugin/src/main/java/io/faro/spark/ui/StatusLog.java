package io.faro.spark.ui;

import io.faro.Nullable;
import io.faro.spark.metrics.ReaderDeclineReason;
import io.faro.spark.metrics.WriterDeclineReason;
import io.faro.spark.metrics.Reason;
import io.faro.spark.metrics.SortDeclineReason;
import io.faro.spark.metrics.Summary;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.function.ToLongFunction;
import org.slf4j.Logger;

/**
 * What the driver's log says of all executors: on how many of them Faro runs, why blocks and shuffles were left to
 * Spark, and the last figures of each executor.
 */
final class StatusLog {
  /** Time between two lines about the state of executors. */
  static final long PAUSE_NANOS = TimeUnit.SECONDS.toNanos(30);
  /** A reason is logged again when its sum has grown to this many times what was logged. */
  private static final long GROWTH = 10;

  private final Logger logger;
  private final LongSupplier nanos;
  /** The state of the last tick, and of the last line; null if there was none. */
  @Nullable private Map<String, Integer> seen;
  /** The last line, empty before the first, and whether Faro did not run somewhere then. */
  private String logged = "";
  private boolean hadProblems;
  private long loggedNanos;
  /** What was logged last, by counter. */
  private final Map<String, Long> sums = new HashMap<>();

  StatusLog(Logger logger, LongSupplier nanos) {
    this.logger = logger;
    this.nanos = nanos;
  }

  /** Called about once a second: a state that has lasted for a second is logged, if it is another one. */
  void tick(Collection<ExecutorFigures> executors, ToLongFunction<String> sum) {
    ExecutorStates now = ExecutorStates.of(executors);
    boolean lasts = now.problems().equals(seen);
    seen = now.isEmpty() ? null : now.problems();
    // Executors that come and go are no news where Faro runs on all of them.
    boolean isNews = now.hasProblems() || hadProblems || logged.isEmpty();
    if (lasts && isNews && (logged.isEmpty() || nanos.getAsLong() - loggedNanos >= PAUSE_NANOS)) {
      log(now);
    }
    logReasons(sum);
  }

  /** Called at the end of the application: nothing is left out. */
  void end(Collection<ExecutorFigures> executors, ToLongFunction<String> sum) {
    log(ExecutorStates.of(executors));
    logReasons(sum);
  }

  private void log(ExecutorStates now) {
    if (!now.isEmpty() && !now.text().equals(logged)) {
      logged = now.text();
      hadProblems = now.hasProblems();
      loggedNanos = nanos.getAsLong();
      if (now.hasProblems()) {
        logger.warn("Faro runs on {}", now.text());
      } else {
        logger.info("Faro runs on {}", now.text());
      }
    }
  }

  private void logReasons(ToLongFunction<String> sum) {
    for (Reason reason : Reason.values()) {
      long requests = grown(sum, "fallbackReason." + reason.key);
      if (requests > 0) {
        logger.warn("Faro: Spark's own fetch delivered blocks of {} requests so far, because of {}: {}", requests,
            reason.key, reason.hint);
      }
    }
    for (ReaderDeclineReason why : ReaderDeclineReason.values()) {
      long reads = grown(sum, "sparkReaders." + why.key);
      if (reads > 0) {
        logger.info("Faro: Spark's own reader made the rows in {} reads of a shuffle so far: {}", reads, why.text);
      }
    }
    for (WriterDeclineReason why : WriterDeclineReason.values()) {
      long tasks = grown(sum, "sparkWriters." + why.key);
      if (tasks > 0) {
        logger.info("Faro: Spark's own writer wrote the output of {} map tasks so far: {}", tasks, why.text);
      }
    }
    for (SortDeclineReason why : SortDeclineReason.values()) {
      long count = grown(sum, why.counter());
      if (count > 0) {
        logger.info("Faro: Spark's own sort has {} {} so far: {}", count, why.unit(), why.text);
      }
    }
  }

  /** The sum, if it is to be logged; otherwise 0. */
  private long grown(ToLongFunction<String> sum, String counter) {
    long now = sum.applyAsLong(counter);
    long before = sums.getOrDefault(counter, 0L);
    if (now > 0 && (before == 0 || now >= GROWTH * before)) {
      sums.put(counter, now);
      return now;
    }
    return 0;
  }

  /** The last figures of an executor; {@code ageNanos}: since its last report, until now or until its end. */
  void summary(ExecutorFigures executor, long ageNanos) {
    if (executor.problem.isEmpty()) {
      logger.info("Faro summary of executor {} on {}, reported {} s {}: {}", executor.executor, executor.host,
          TimeUnit.NANOSECONDS.toSeconds(ageNanos), executor.removed ? "before its end" : "ago",
          Summary.line(executor.counters));
    }
  }
}
