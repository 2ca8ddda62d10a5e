package io.faro.spark.transport;

import java.util.Map;

/**
 * All native memory of Faro in this process, summed up from the counters of its parts: docs/user/memory.md has the
 * bound of
 * each. The highest sum is that of the moments at which counters were read; the driver's reports do that every few
 * seconds.
 */
public final class NativeMemory {
  /** Each counts bytes that no other one counts. */
  private static final String[] PARTS = {
    "pool.mappedBytes", "pool.externalBytes", "memory.requestBytes", "memory.pathBytes", "memory.offsetBytes",
    "memory.connectionBytes", "memory.rowDecoderBytes", "memory.idleRowDecoderBytes", "memory.compressorBytes",
    "memory.copiedBytes"
  };

  /** Guarded by this. */
  private long max;

  /** Adds the sum, its highest value, and the part that Java holds. */
  public synchronized void addTo(Map<String, Long> counters) {
    counters.put("memory.copiedBytes", CopiedBlock.heldBytes());
    long total = 0;
    for (String part : PARTS) {
      total += counters.getOrDefault(part, 0L);
    }
    max = Math.max(max, total);
    counters.put("memory.totalBytes", total);
    counters.put("memory.totalHighWaterBytes", max);
  }
}
