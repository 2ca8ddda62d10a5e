package io.faro.spark.metrics;

import java.util.EnumMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.LongAdder;

/** Counts the sorts of this process: a task that sorts, or a plan, has no executor of Faro's at hand. */
public final class SortCounters {
  /** Partitions that Faro sorted. */
  public static final LongAdder SORTS = new LongAdder();
  /** Runs of sorted rows that moved to disk because memory ended. */
  public static final LongAdder RUNS = new LongAdder();
  private static final Map<SortDeclineReason, LongAdder> DECLINED = new EnumMap<>(SortDeclineReason.class);

  static {
    for (SortDeclineReason why : SortDeclineReason.values()) {
      DECLINED.put(why, new LongAdder());
    }
  }

  private SortCounters() {}

  /** Counts a sort, or a partition, that is left to Spark. */
  public static void declined(SortDeclineReason why) {
    DECLINED.get(why).increment();
  }

  public static long sum(SortDeclineReason why) {
    return DECLINED.get(why).sum();
  }

  /** Forgets the plans of an application before, in the same driver. */
  public static void resetPlans() {
    for (SortDeclineReason why : SortDeclineReason.values()) {
      if (why.isDrivers) {
        DECLINED.get(why).reset();
      }
    }
  }

  /** What the driver has counted; empty if there is nothing. */
  public static Map<String, Long> ofPlans() {
    Map<String, Long> counts = new TreeMap<>();
    DECLINED.forEach((why, count) -> {
      if (why.isDrivers && count.sum() > 0) {
        counts.put(why.counter(), count.sum());
      }
    });
    return counts;
  }

  static void addTo(Map<String, Long> all) {
    all.put("sorts", SORTS.sum());
    all.put("sortRuns", RUNS.sum());
    DECLINED.forEach((why, count) -> all.put(why.counter(), count.sum()));
  }
}
