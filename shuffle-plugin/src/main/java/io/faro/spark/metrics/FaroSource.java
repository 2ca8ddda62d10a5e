package io.faro.spark.metrics;

import com.codahale.metrics.Gauge;
import com.codahale.metrics.MetricRegistry;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.spark.metrics.source.Source;

/**
 * Every counter of Faro as a gauge in Spark's metrics system, source {@code faro}. The names are those of the
 * counters, so a new native counter needs no change here. Each read of a gauge reads all counters; reporters do that
 * every few seconds only.
 */
public final class FaroSource implements Source {
  private final MetricRegistry registry = new MetricRegistry();

  public FaroSource(Supplier<Map<String, Long>> counters) {
    for (String name : counters.get().keySet()) {
      registry.register(name, (Gauge<Long>) () -> counters.get().getOrDefault(name, 0L));
    }
  }

  @Override
  public String sourceName() {
    return "faro";
  }

  @Override
  public MetricRegistry metricRegistry() {
    return registry;
  }
}
