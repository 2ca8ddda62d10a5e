package io.faro.spark.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * docs/user/metrics.md between its two markers is what {@link Metric} says; tests/spark/ui compares it with what
 * executors
 * count. {@code mvn -pl jvm,shuffle-plugin test -Dtest=MetricsDocTest -Dsurefire.failIfNoSpecifiedTests=false
 * -Dfaro.docs.write=true} writes it.
 */
class MetricsDocTest {
  private static final String BEGIN = "<!-- metrics: begin; generated, see MetricsDocTest -->";
  private static final String END = "<!-- metrics: end -->";

  private static String table() {
    List<String> lines = new ArrayList<>();
    lines.add("| Metric | Kind | Unit | What |");
    lines.add("|---|---|---|---|");
    for (Metric metric : Metric.ALL) {
      String kind = metric.kind == Metric.Kind.LEVEL ? "level" : "count";
      lines.add("| `" + metric.name + "` | " + kind + " | " + metric.unit + " | " + metric.doc + " |");
    }
    return String.join("\n", lines);
  }

  @Test
  void theManualSaysWhatTheCodeSays() throws IOException {
    Path manual = Paths.get(System.getProperty("faro.root"), "docs", "user", "metrics.md");
    String text = new String(Files.readAllBytes(manual), StandardCharsets.UTF_8);
    int begin = text.indexOf(BEGIN) + BEGIN.length();
    int end = text.indexOf(END);
    String expected = text.substring(0, begin) + "\n" + table() + "\n" + text.substring(end);
    if (Boolean.getBoolean("faro.docs.write")) {
      Files.write(manual, expected.getBytes(StandardCharsets.UTF_8));
      text = expected;
    }
    assertEquals(expected, text, "docs/user/metrics.md and Metric differ; write it anew with: "
        + "mvn -pl jvm,shuffle-plugin "
        + "test -Dtest=MetricsDocTest -Dsurefire.failIfNoSpecifiedTests=false -Dfaro.docs.write=true");
  }
}
