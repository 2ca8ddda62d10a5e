package io.faro.spark.ui;

import com.codahale.metrics.Gauge;
import com.codahale.metrics.MetricRegistry;
import io.faro.spark.metrics.Metric;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.metrics.source.Source;

/**
 * The sums over all executors in the driver's metrics system, source {@code faro}. Executors have no HTTP port, so
 * Prometheus reads the driver's. Counts include executors that ended, so they never go down; levels are of running
 * executors. A metric appears when an executor first reports it.
 */
final class Totals implements Source {
  private final MetricRegistry registry = new MetricRegistry();
  private final Map<String, AtomicLong> sums = new ConcurrentHashMap<>();

  /** An executor's figures replace its last ones, if any. */
  void replace(ExecutorFigures before, ExecutorFigures now) {
    now.counters.forEach((name, value) -> {
      if (!now.removed || !Metric.isLevel(name)) {
        add(name, value - (before == null ? 0 : before.counter(name)));
      }
    });
  }

  void removed(ExecutorFigures last) {
    last.counters.forEach((name, value) -> {
      if (Metric.isLevel(name)) {
        add(name, -value);
      }
    });
  }

  long sum(String name) {
    AtomicLong sum = sums.get(name);
    return sum == null ? 0 : sum.get();
  }

  private void add(String name, long more) {
    sums.computeIfAbsent(name, this::register).addAndGet(more);
  }

  private AtomicLong register(String name) {
    AtomicLong sum = new AtomicLong();
    registry.register(name, (Gauge<Long>) sum::get);
    return sum;
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
