package io.faro.spark.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class SummaryTest {
  private static Map<String, Long> counters(String... names) {
    Map<String, Long> counters = new LinkedHashMap<>();
    for (String name : names) {
      counters.put(name, (long) counters.size() + 1);
    }
    return counters;
  }

  @Test
  void blocksOfServicesOfExecutorsAndOfSparkStandTogether() {
    String line = Summary.line(counters("serviceBlocks", "serviceBytes"));
    assertTrue(line.contains(" serviceOutputs=0 serviceOutputsRefused=0 serviceLocalBlocks=0 "
        + "serviceLocalBytes=0 serviceBlocks=1 serviceBytes=2 executorBlocks=0 executorBytes=0 "
        + "replicaBlocks=0 replicaBytes=0 fallbacks=0 fallbackBlocks=0 "), line);
  }

  @Test
  void withoutAServiceTheLineHasNothingOfIt() {
    String line = Summary.line(counters("remoteBlocks.tcp"));
    assertFalse(line.contains("service") || line.contains("executor"), line);
    assertTrue(line.startsWith("remoteBlocks.verbs=0 "), line);
  }

  @Test
  void itIsLoggedOnce() {
    List<String> lines = new ArrayList<>();
    Summary summary = new Summary(() -> counters("putBack"), lines::add);
    summary.log();
    summary.log();
    assertEquals(1, lines.size());
    assertTrue(lines.get(0).endsWith(" putBack=1"), lines.get(0));
  }
}
