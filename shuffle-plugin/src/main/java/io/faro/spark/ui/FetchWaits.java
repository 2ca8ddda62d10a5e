package io.faro.spark.ui;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.StageInfo;
import scala.Option;
import scala.collection.Iterator;

/**
 * Keeps which query a shuffle belongs to, which shuffles a stage reads, and how long its tasks waited for them. Spark
 * counts the wait by task and not by shuffle: the wait of a stage that reads several counts for each of them.
 */
final class FetchWaits {
  /** Older stages are forgotten; those of a job that runs are newer. */
  static final int MAX_STAGES = 10_000;

  /** Spark SQL's name for it. */
  private static final String QUERY = "spark.sql.execution.id";

  /** The shuffle that each stage writes. */
  private final Map<Integer, Integer> writes = new BoundedMap<>();
  private final Map<Integer, Long> queries = new BoundedMap<>();
  /** Shuffles that Faro has no part in. */
  private final Map<Integer, Boolean> sparks = new BoundedMap<>();

  private static final class BoundedMap<V> extends LinkedHashMap<Integer, V> {
    private static final long serialVersionUID = 1;

    @Override
    protected boolean removeEldestEntry(Map.Entry<Integer, V> eldest) {
      return size() > MAX_STAGES;
    }
  }

  /** Returns whether a job with a shuffle has started. */
  synchronized boolean sawShuffle() {
    return !writes.isEmpty();
  }

  synchronized void jobStarted(SparkListenerJobStart job) throws ReflectiveOperationException {
    long query = query(job.properties());
    Iterator<?> stages = Sequences.elements(job, "stageInfos");
    while (stages.hasNext()) {
      StageInfo stage = (StageInfo) stages.next();
      Option<Object> shuffle = stage.shuffleDepId();
      if (shuffle.isDefined()) {
        writes.put(stage.stageId(), (Integer) shuffle.get());
        if (query != ShuffleFigures.NO_QUERY) {
          queries.putIfAbsent((Integer) shuffle.get(), query);
        }
      }
    }
  }

  /** Faro has no part in a shuffle. */
  synchronized void leftToSpark(int shuffle) {
    sparks.put(shuffle, true);
  }

  synchronized boolean isSparks(int shuffle) {
    return sparks.containsKey(shuffle);
  }

  /** The id of the query that first ran the shuffle, or {@link ShuffleFigures#NO_QUERY}. */
  synchronized long queryOf(int shuffle) {
    return queries.getOrDefault(shuffle, ShuffleFigures.NO_QUERY);
  }

  private static long query(Properties job) {
    String id = job == null ? null : job.getProperty(QUERY);
    return id == null ? ShuffleFigures.NO_QUERY : Long.parseLong(id);
  }

  /** Nanoseconds by shuffle that the tasks of a stage waited for remote blocks. */
  synchronized Map<Integer, Long> ofStage(StageInfo stage) throws ReflectiveOperationException {
    Map<Integer, Long> waits = new LinkedHashMap<>();
    if (stage.taskMetrics() == null) {
      return waits;
    }
    long nanos = TimeUnit.MILLISECONDS.toNanos(stage.taskMetrics().shuffleReadMetrics().fetchWaitTime());
    Iterator<?> parents = Sequences.elements(stage, "parentIds");
    while (parents.hasNext()) {
      Integer shuffle = writes.get((Integer) parents.next());
      if (shuffle != null) {
        waits.put(shuffle, nanos);
      }
    }
    return waits;
  }
}
