package io.faro.spark.metrics;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import org.junit.jupiter.api.Test;

class PluginMetricsTest {
  @Test
  void everyCounterOfTheJavaSideIsInTheManual() throws IOException {
    String manual = new String(
        Files.readAllBytes(Paths.get(System.getProperty("faro.root"), "docs", "user", "metrics.md")),
        StandardCharsets.UTF_8);
    for (String name : new PluginCounters().snapshot().keySet()) {
      assertTrue(manual.contains("| `" + name + "` |"), name + " is not in docs/user/metrics.md");
    }
  }
}
