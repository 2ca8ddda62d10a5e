package io.faro.spark.transport;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;

class NativeMemoryTest {
  private final NativeMemory memory = new NativeMemory();

  private long[] totals(Object... figures) {
    Map<String, Long> counters = new HashMap<>();
    for (int i = 0; i < figures.length; i += 2) {
      counters.put((String) figures[i], (Long) figures[i + 1]);
    }
    memory.addTo(counters);
    return new long[] {counters.get("memory.totalBytes"), counters.get("memory.totalHighWaterBytes")};
  }

  @Test
  void itIsTheSumOfThePartsAndTheMostStays() {
    long[] first = totals("pool.mappedBytes", 100L, "pool.leasedBytes", 70L, "memory.rowDecoderBytes", 20L,
        "memory.tasksHighWaterBytes", 999L, "connectionBytes", 5L);
    assertEquals(120 + CopiedBlock.heldBytes(), first[0]);
    long[] second = totals("pool.mappedBytes", 30L);
    assertEquals(30 + CopiedBlock.heldBytes(), second[0]);
    assertEquals(first[1], second[1]);
  }
}
