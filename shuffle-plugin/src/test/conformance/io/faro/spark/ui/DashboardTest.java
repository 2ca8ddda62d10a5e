package io.faro.spark.ui;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.faro.spark.metrics.Metric;
import java.io.IOException;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Lints docs/grafana/faro.json: Grafana takes a wrong dashboard without a word and shows empty panels. */
class DashboardTest {
  private static final Pattern METRIC = Pattern.compile("_driver_faro_(\\w+?)_Value");
  private static final List<String> KINDS = Arrays.asList("timeseries", "stat", "row", "text", "bargauge");
  private static final List<String> UNITS =
      Arrays.asList("Bps", "bytes", "short", "ops", "percentunit", "ns", "none");
  private static final int GRID = 24;

  private final JsonNode dashboard;
  /** By the name that Prometheus has. */
  private final Map<String, Metric> metrics = new HashMap<>();

  DashboardTest() throws IOException {
    ObjectMapper mapper = new ObjectMapper().enable(DeserializationFeature.FAIL_ON_READING_DUP_TREE_KEY);
    dashboard = mapper.readTree(Paths.get(System.getProperty("faro.root"), "docs", "grafana", "faro.json").toFile());
    for (Metric metric : Metric.ALL) {
      metrics.put(metric.name.replaceAll("[^a-zA-Z0-9]", "_"), metric);
    }
  }

  @Test
  void itCanBeImported() {
    assertTrue(dashboard.path("id").isNull(), "an id is of one Grafana only");
    assertTrue(dashboard.path("uid").asText().matches("[a-z-]{3,40}"));
    assertFalse(dashboard.path("title").asText().isEmpty());
    assertTrue(dashboard.path("schemaVersion").asInt() >= 36);
    assertTrue(dashboard.path("panels").size() > 0);
    Set<String> variables = new HashSet<>();
    for (JsonNode variable : dashboard.path("templating").path("list")) {
      variables.add(variable.path("name").asText());
    }
    for (JsonNode panel : dashboard.path("panels")) {
      Matcher used = Pattern.compile("\\$\\{(\\w+)}").matcher(panel.toString());
      while (used.find()) {
        assertTrue(variables.contains(used.group(1)), panel.path("title") + " uses ${" + used.group(1) + "}");
      }
    }
  }

  @Test
  void panelsHaveAnIdAPlaceAUnitAndAnExplanation() {
    Set<Integer> ids = new HashSet<>();
    Set<String> cells = new HashSet<>();
    for (JsonNode panel : dashboard.path("panels")) {
      String title = panel.path("title").asText();
      assertFalse(title.isEmpty());
      assertTrue(ids.add(panel.path("id").asInt()), title + ": the id is taken");
      assertTrue(KINDS.contains(panel.path("type").asText()), title + ": " + panel.path("type"));
      JsonNode place = panel.path("gridPos");
      int right = place.path("x").asInt() + place.path("w").asInt();
      assertTrue(place.path("w").asInt() > 0 && place.path("h").asInt() > 0 && right <= GRID, title + ": " + place);
      for (int x = place.path("x").asInt(); x < right; x++) {
        for (int y = place.path("y").asInt(); y < place.path("y").asInt() + place.path("h").asInt(); y++) {
          assertTrue(cells.add(x + "," + y), title + " lies over another panel");
        }
      }
      if (panel.path("targets").size() > 0) {
        String unit = panel.path("fieldConfig").path("defaults").path("unit").asText();
        assertTrue(UNITS.contains(unit), title + ": unit '" + unit + "'");
        assertFalse(panel.path("description").asText().isEmpty(), title + ": no description");
        assertEquals("${datasource}", panel.path("datasource").path("uid").asText(), title);
      }
    }
  }

  @Test
  void everyMetricExistsAndCountsAreRates() {
    int found = 0;
    for (JsonNode panel : dashboard.path("panels")) {
      String title = panel.path("title").asText();
      Set<String> refs = new HashSet<>();
      for (JsonNode target : panel.path("targets")) {
        String query = target.path("expr").asText();
        assertTrue(refs.add(target.path("refId").asText()), title + ": the refId is taken");
        assertEquals(query.chars().filter(c -> c == '(').count(), query.chars().filter(c -> c == ')').count(), query);
        Matcher metric = METRIC.matcher(query);
        assertTrue(metric.find(), title + ": no metric of Faro in " + query);
        metric.reset();
        while (metric.find()) {
          found++;
          Metric known = metrics.get(metric.group(1));
          assertTrue(known != null, title + ": there is no metric " + metric.group(1));
          boolean rate = query.contains("rate(") || query.contains("increase(");
          assertEquals(known.kind == Metric.Kind.COUNT, rate, title + ": counts want a rate, levels none");
        }
      }
    }
    assertTrue(found >= 15, "metrics found: " + found);
  }
}
