package io.faro.spark.ui;

import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.util.kvstore.KVIndex;

/** Sums of what all executors read from a host's node service; stored and logged as {@link ExecutorFigures} are. */
public final class ServiceFigures implements SparkListenerEvent {
  @KVIndex
  public String host;
  /** {@code Traffic.SERVICE_BLOCKS} and {@code Traffic.SERVICE_BYTES}. */
  public Map<String, Long> counters = new TreeMap<>();

  long counter(String name) {
    return counters.getOrDefault(name, 0L);
  }

  /** These figures and what one executor has to add. */
  ServiceFigures plus(Map<String, Long> more) {
    ServiceFigures sum = new ServiceFigures();
    sum.host = host;
    sum.counters.putAll(counters);
    more.forEach((name, value) -> sum.counters.merge(name, value, Long::sum));
    return sum;
  }
}
