package io.faro.spark.metrics;

import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/** Counts the sorts of this process: a task that sorts has no executor of Faro's at hand. */
public final class SortCounters {
  /** Partitions that Faro sorted. */
  public static final LongAdder SORTS = new LongAdder();
  /** Partitions that Spark's sorter went on with, as memory ended. */
  public static final LongAdder MEMORY = new LongAdder();
  /** Partitions that Spark's sorter sorted, as the native library cannot be loaded. */
  public static final LongAdder NO_LIBRARY = new LongAdder();

  private SortCounters() {}

  static void addTo(Map<String, Long> all) {
    all.put("sorts", SORTS.sum());
    all.put("sparkSorts.memory", MEMORY.sum());
    all.put("sparkSorts.noLibrary", NO_LIBRARY.sum());
  }
}
