package io.faro.spark.ui;

import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.util.kvstore.KVIndex;

/** What all executors fetched of one shuffle so far; stored and logged as {@link ExecutorFigures} are. */
public final class ShuffleFigures implements SparkListenerEvent {
  @KVIndex
  public int shuffle;
  /** {@code remoteBlocks.<fabric>} and the like, as for an executor, and {@link Traffic#SLOWEST}. */
  public Map<String, Long> counters = new TreeMap<>();

  long counter(String name) {
    return counters.getOrDefault(name, 0L);
  }

  /** These figures and what one executor has to add. */
  ShuffleFigures plus(Map<String, Long> more) {
    ShuffleFigures sum = new ShuffleFigures();
    sum.shuffle = shuffle;
    sum.counters.putAll(counters);
    more.forEach((name, value) ->
        sum.counters.merge(name, value, name.equals(Traffic.SLOWEST) ? Math::max : Long::sum));
    return sum;
  }
}
