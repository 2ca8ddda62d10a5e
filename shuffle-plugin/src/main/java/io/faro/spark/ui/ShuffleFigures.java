package io.faro.spark.ui;

import io.faro.spark.metrics.Traffic;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.util.kvstore.KVIndex;

/** Figures of all executors' fetches of one shuffle so far; stored and logged as {@link ExecutorFigures} are. */
public final class ShuffleFigures implements SparkListenerEvent {
  /** Query of a shuffle that no query of Spark SQL has, or whose query is not known. */
  static final long NO_QUERY = -1;

  @KVIndex
  public int shuffle;
  /** Spark SQL's id of the first query that ran the shuffle; logs of older versions do not have it. */
  public long query = NO_QUERY;
  /** Faro has no part in it, because it was switched off there. */
  public boolean sparks;
  /** {@code remoteBlocks.<fabric>} and the like, as for an executor, and {@link Traffic#SLOWEST}. */
  public Map<String, Long> counters = new TreeMap<>();

  long counter(String name) {
    return counters.getOrDefault(name, 0L);
  }

  /** These figures and what one executor has to add. */
  ShuffleFigures plus(Map<String, Long> more) {
    ShuffleFigures sum = new ShuffleFigures();
    sum.shuffle = shuffle;
    sum.query = query;
    sum.sparks = sparks;
    sum.counters.putAll(counters);
    more.forEach((name, value) ->
        sum.counters.merge(name, value, name.equals(Traffic.SLOWEST) ? Math::max : Long::sum));
    return sum;
  }
}
