package io.faro.spark.metrics;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * The log line at the end of an executor: the most important counters in a fixed order, with those of the node service
 * where there is one, then all others that are not zero. Logged once, when Spark stops the executor or at the end of
 * the process.
 */
public final class Summary {
  private static final String[] FIRST = {
    "remoteBlocks.verbs", "remoteBytes.verbs", "remoteBlocks.tcp", "remoteBytes.tcp", "remoteBlocks.shm",
    "remoteBytes.shm", "fallbacks", "fallbackBlocks", "crcErrors", "pool.highWaterBytes",
    "memory.tasksHighWaterBytes", "memory.totalHighWaterBytes"
  };
  /** Before {@link #LEFT}, if one of them is not zero: where the blocks of other executors came from. */
  private static final String[] SERVICE = {
    "serviceOutputs", "serviceOutputsRefused", "serviceLocalBlocks", "serviceLocalBytes", "serviceBlocks",
    "serviceBytes", "executorBlocks", "executorBytes", "replicaBlocks", "replicaBytes"
  };
  private static final String LEFT = "fallbacks";

  private final Supplier<Map<String, Long>> counters;
  private final Consumer<String> out;
  private boolean logged;

  public Summary(Supplier<Map<String, Long>> counters, Consumer<String> out) {
    this.counters = counters;
    this.out = out;
  }

  /** Logs the line, the first time that this is called. */
  public synchronized void log() {
    if (logged) {
      return;
    }
    logged = true;
    out.accept("Faro summary: " + line(counters.get()));
  }

  /** The counters in the order of the line. */
  public static String line(Map<String, Long> counters) {
    Map<String, Long> ordered = new LinkedHashMap<>();
    boolean service = Arrays.stream(SERVICE).anyMatch(name -> counters.getOrDefault(name, 0L) != 0);
    for (String name : FIRST) {
      if (service && name.equals(LEFT)) {
        for (String of : SERVICE) {
          ordered.put(of, counters.getOrDefault(of, 0L));
        }
      }
      ordered.put(name, counters.getOrDefault(name, 0L));
    }
    counters.forEach((name, value) -> {
      if (value != 0) {
        ordered.putIfAbsent(name, value);
      }
    });
    StringBuilder line = new StringBuilder();
    ordered.forEach((name, value) -> line.append(line.length() == 0 ? "" : " ").append(name).append('=').append(value));
    return line.toString();
  }
}
