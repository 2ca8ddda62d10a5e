package io.faro.spark.ui;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.StageInfo;
import scala.Option;
import scala.collection.Iterator;

/**
 * Which shuffles a stage reads, and how long its tasks waited for them. Spark counts the wait by task and not by
 * shuffle: the wait of a stage that reads several counts for each of them.
 */
final class TaskWaits {
  /** Older stages are forgotten; those of a job that runs are newer. */
  static final int MOST_STAGES = 10_000;

  /** The shuffle that each stage writes. */
  private final Map<Integer, Integer> writes = new LinkedHashMap<Integer, Integer>() {
    @Override
    protected boolean removeEldestEntry(Map.Entry<Integer, Integer> eldest) {
      return size() > MOST_STAGES;
    }
  };

  /** Whether a job with a shuffle has started. */
  synchronized boolean sawShuffle() {
    return !writes.isEmpty();
  }

  synchronized void jobStarted(SparkListenerJobStart job) throws ReflectiveOperationException {
    Iterator<?> stages = Sequences.elements(job, "stageInfos");
    while (stages.hasNext()) {
      StageInfo stage = (StageInfo) stages.next();
      Option<Object> shuffle = stage.shuffleDepId();
      if (shuffle.isDefined()) {
        writes.put(stage.stageId(), (Integer) shuffle.get());
      }
    }
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
