package io.faro.spark.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.Fabric;
import io.faro.spark.ui.Figures;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/** The reporter on the test's own thread: the driver's answers are the test's steps, and it ends by interrupting. */
class ReporterTest {
  private final Map<String, Long> counters = new TreeMap<>(Figures.counters("requests", 1));
  private final Traffic traffic = new Traffic();
  private final List<Report> asked = new ArrayList<>();
  private final List<Report> told = new ArrayList<>();
  private final List<Runnable> steps = new ArrayList<>();
  private final Reporter reporter = new Reporter("1", "h", () -> counters, () -> "why", traffic, FakeDriver::new, 1);

  private final class FakeDriver implements Reporter.Driver {
    @Override
    public void ask(byte[] report) throws Exception {
      asked.add(Report.decode(report));
      if (steps.isEmpty()) {
        throw new InterruptedException();
      }
      steps.remove(0).run();
    }

    @Override
    public void tell(byte[] report) throws IOException {
      told.add(Report.decode(report));
    }
  }

  @Test
  void onlyWhatChangedIsReported() {
    steps.add(() -> { });
    steps.add(() -> counters.put("requests", 2L));
    reporter.run();
    assertEquals(1L, asked.get(0).counters.get("requests"));
    assertTrue(asked.get(1).counters.isEmpty());
    assertEquals(2L, asked.get(2).counters.get("requests"));
    assertEquals(3, asked.get(2).number);
    assertEquals("why", asked.get(2).problem);
  }

  @Test
  void aReportThatFailedIsSentAgainAsItWas() {
    traffic.ended(5, "p", Figures.delivered(Fabric.TCP, 10), 1);
    steps.add(() -> {
      counters.put("requests", 2L);
      throw new IllegalStateException("no answer");
    });
    steps.add(() -> { });
    reporter.run();
    assertEquals(1, asked.get(1).number);
    assertEquals(10L, asked.get(1).shuffles.get(5).get("remoteBytes.tcp"));
    assertEquals(2, asked.get(2).number);
    assertTrue(asked.get(2).shuffles.isEmpty());
  }

  @Test
  void aDriverThatNeverAnswersIsLeftAloneAndTheExecutorGoesOn() {
    Reporter alone = new Reporter("1", "h", () -> counters, () -> "", traffic, () -> {
      asked.add(new Report());
      throw new IOException("no such endpoint");
    }, 1);
    alone.run();
    assertEquals(Reporter.MAX_FAILURES, asked.size());
    alone.stop();
    assertTrue(told.isEmpty());
  }

  @Test
  void theLastFiguresAreToldAtTheEndOnce() {
    steps.add(() -> {
      counters.put("requests", 9L);
      reporter.stop();
      reporter.stop();
    });
    reporter.run();
    assertEquals(1, told.size());
    assertEquals(9L, told.get(0).counters.get("requests"));
    assertEquals(1, asked.size());
  }

  @Test
  void countersOfAClosedEndpointDoNotReplaceThoseOfAnOpenOne() {
    counters.put("remoteBytes.tcp", 5L);
    steps.add(() -> counters.remove("remoteBytes.tcp"));
    reporter.run();
    assertTrue(asked.get(1).counters.isEmpty());
  }
}
