package io.faro.spark.ui;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.spark.metrics.Report;
import io.faro.spark.metrics.Traffic;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.util.kvstore.InMemoryStore;
import org.junit.jupiter.api.Test;

class CollectorTest {
  private static final int SPARKS = 77;
  private static final long MAX_PACE = TimeUnit.SECONDS.toNanos(60);

  private final FigureStore store = new FigureStore(new InMemoryStore());
  private final List<SparkListenerEvent> log = new ArrayList<>();
  private final List<String> answered = new ArrayList<>();
  private final Totals totals = new Totals();
  private long now = 1_000_000_000_000L;
  private final LogLines lines = new LogLines();
  private long query = ShuffleFigures.NO_QUERY;
  private final Collector collector =
      new Collector(store, log::add, () -> now, MAX_PACE, totals, shuffle -> query,
          shuffle -> shuffle == SPARKS, new StatusLog(lines.logger(), () -> now));

  private void take(Report report) throws Exception {
    collector.take(report, 5_000, () -> answered.add(report.executor));
  }

  private void pass(long nanos) {
    now += nanos;
    collector.tick();
  }

  @Test
  void aReportIsOnTheBoardAtOnce() throws Exception {
    take(Figures.report("1", 1, "requests", 3));
    assertEquals(3, store.executors().get(0).counter("requests"));
    assertEquals("host-1", store.executors().get(0).host);
    assertEquals(5_000, store.executors().get(0).time);
  }

  @Test
  void whatTasksWaitedIsAddedToTheirShuffles() throws Exception {
    collector.waited(Collections.singletonMap(4, 10L));
    collector.waited(Collections.singletonMap(5, 0L));
    collector.waited(Collections.singletonMap(4, 7L));
    assertEquals(1, store.shuffles().size(), "no row for a wait of nothing");
    assertEquals(4, store.shuffles().get(0).shuffle);
    assertEquals(17, store.shuffles().get(0).counter(Traffic.TASK_WAIT));
  }

  @Test
  void aShuffleThatFaroHasNoPartInIsMarked() throws Exception {
    collector.waited(Collections.singletonMap(SPARKS, 0L));
    collector.waited(Collections.singletonMap(4, 10L));
    assertFalse(store.shuffles().get(0).sparks);
    assertTrue(store.shuffles().get(1).sparks);
  }

  @Test
  void aReportWithoutCountersCanSayThatFaroDoesNotRun() throws Exception {
    take(Figures.report("1", 1, "requests", 3));
    Report report = Figures.report("1", 2);
    report.problem = "no";
    take(report);
    assertEquals("no", store.executors().get(0).problem);
    assertEquals(3, store.executors().get(0).counter("requests"));
    collector.removed("1");
    assertEquals("no", store.executors().get(0).problem);
  }

  @Test
  void anExecutorThatIsKilledHasASummaryWithTheAgeOfItsReport() throws Exception {
    take(Figures.report("1", 1, "remoteBlocks.tcp", 3));
    take(Figures.report("2", 1, "remoteBlocks.tcp", 4));
    pass(TimeUnit.SECONDS.toNanos(7));
    take(Figures.report("2", 2));
    collector.removed("1");
    pass(Collector.SUMMARY_NANOS - 1);
    assertEquals(0, lines.with("Faro summary").size());
    pass(1);
    pass(1);
    assertEquals(1, lines.with("Faro summary").size());
    String line = lines.with("Faro summary").get(0);
    assertTrue(line.startsWith("INFO Faro summary of executor 1 on host-1, reported 7 s before its end: "), line);
    assertTrue(line.contains(" remoteBlocks.tcp=3 "), line);
    collector.ended();
    assertEquals(2, lines.with("Faro summary").size());
    assertTrue(lines.with("Faro summary").get(1).contains("executor 2 on host-2, reported 5 s ago: "));
  }

  @Test
  void aShuffleKeepsItsFirstQuery() throws Exception {
    collector.waited(Collections.singletonMap(4, 10L));
    assertEquals(ShuffleFigures.NO_QUERY, store.shuffles().get(0).query);
    for (query = 3; query < 5; query++) {
      collector.waited(Collections.singletonMap(4, 7L));
      assertEquals(3, store.shuffles().get(0).query);
    }
  }

  @Test
  void anAnswerWaitsForThePace() throws Exception {
    take(Figures.report("1", 1, "requests", 3));
    pass(Collector.PACE_NANOS / 2);
    assertTrue(answered.isEmpty());
    pass(Collector.PACE_NANOS);
    assertEquals(1, answered.size());
    pass(Collector.PACE_NANOS);
    assertEquals(1, answered.size(), "answered once");
  }

  @Test
  void manyExecutorsAreAskedMoreRarelyButBeforeTheirAnswerIsLost() throws Exception {
    for (int i = 0; i < 200; i++) {
      take(Figures.report("" + i, 1, "requests", 1));
    }
    pass(Collector.PACE_NANOS + Collector.PACE_PER_EXECUTOR_NANOS * 199);
    assertTrue(answered.isEmpty());
    pass(Collector.PACE_PER_EXECUTOR_NANOS);
    assertEquals(200, answered.size());
    for (int i = 0; i < 4_500; i++) {
      take(Figures.report("" + i, 2, "requests", 1));
    }
    pass(MAX_PACE);
    assertEquals(4_700, answered.size());
  }

  @Test
  void theEndOfAStageAsksAllAtOnceButNotTooOften() throws Exception {
    take(Figures.report("1", 1, "requests", 1));
    take(Figures.report("2", 1, "requests", 1));
    assertEquals(0, collector.stageEnded());
    collector.ask();
    assertEquals(2, answered.size());
    now += Collector.STAGE_NANOS / 4;
    assertEquals(Collector.STAGE_NANOS * 3 / 4, collector.stageEnded());
  }

  @Test
  void aRepeatedReportCountsOnce() throws Exception {
    Report report = Figures.report("1", 1, "requests", 1);
    report.shuffles.put(4, Figures.counters("requests", 10));
    take(report);
    take(report);
    assertEquals(10, store.shuffles().get(0).counter("requests"));
    assertEquals(1, totals.sum("requests"));
    collector.ask();
    assertEquals(1, answered.size(), "an executor that asks again has given up its last question");
  }

  @Test
  void aShuffleIsTheSumOverExecutorsAndReports() throws Exception {
    for (int i = 1; i <= 3; i++) {
      Report report = Figures.report("" + i, 1);
      report.shuffles.put(4, Figures.counters("requests", 10, Traffic.SLOWEST, 100 * i));
      take(report);
    }
    assertEquals(30, store.shuffles().get(0).counter("requests"));
    assertEquals(300, store.shuffles().get(0).counter(Traffic.SLOWEST));
  }

  @Test
  void aServiceIsTheSumOverItsReadersAndIsLogged() throws Exception {
    for (int i = 1; i <= 3; i++) {
      Report report = Figures.report("" + i, 1);
      report.services.put("host", Figures.counters(Traffic.SERVICE_BLOCKS, i, Traffic.SERVICE_BYTES, 10));
      take(report);
    }
    assertEquals(1, store.services().size());
    assertEquals(6, store.services().get(0).counter(Traffic.SERVICE_BLOCKS));
    assertEquals(30, store.services().get(0).counter(Traffic.SERVICE_BYTES));
    collector.ending();
    assertTrue(log.contains(store.services().get(0)));
  }

  @Test
  void anEmptyReportKeepsWhatIsKnown() throws Exception {
    take(Figures.report("1", 1, "requests", 3));
    take(Figures.report("1", 2));
    assertEquals(3, store.executors().get(0).counter("requests"));
  }

  @Test
  void theLogGetsAnExecutorAtOnceThenRarelyAndNeverUnchanged() throws Exception {
    take(Figures.report("1", 1, "requests", 1));
    pass(1);
    assertEquals(1, log.size());
    take(Figures.report("1", 2, "requests", 2));
    pass(Collector.LOG_NANOS / 2);
    assertEquals(1, log.size());
    pass(Collector.LOG_NANOS);
    assertEquals(2, log.size());
    assertEquals(2, ((ExecutorFigures) log.get(1)).counter("requests"));
    pass(10 * Collector.LOG_NANOS);
    assertEquals(2, log.size());
  }

  @Test
  void atTheEndEverythingIsLoggedAndWhatComesLateToo() throws Exception {
    take(Figures.report("1", 1, "requests", 1));
    pass(1);
    take(Figures.report("1", 2, "requests", 2));
    collector.ending();
    assertEquals(2, log.size());
    collector.take(Figures.report("1", 3, "requests", 3), 0, null);
    assertEquals(3, ((ExecutorFigures) log.get(2)).counter("requests"));
  }

  @Test
  void aRemovedExecutorIsMarkedLoggedAndLetGo() throws Exception {
    take(Figures.report("1", 1, "requests", 1));
    collector.removed("1");
    assertTrue(store.executors().get(0).removed);
    assertTrue(((ExecutorFigures) log.get(0)).removed);
    collector.ask();
    assertTrue(answered.isEmpty(), "the executor is removed: no answer");
    collector.removed("no such executor");
    assertEquals(1, store.executors().size());
  }

  @Test
  void totalsKeepTheCountsOfEndedExecutorsAndNotTheirLevels() throws Exception {
    take(Figures.report("1", 1, "requests", 5, "pool.limitBytes", 100));
    take(Figures.report("2", 1, "requests", 7, "pool.limitBytes", 100));
    assertEquals(200, totals.sum("pool.limitBytes"));
    collector.removed("1");
    assertEquals(12, totals.sum("requests"));
    assertEquals(100, totals.sum("pool.limitBytes"));
    // Its last report comes after its end.
    collector.take(Figures.report("1", 2, "requests", 6, "pool.limitBytes", 100), 0, null);
    assertEquals(13, totals.sum("requests"));
    assertEquals(100, totals.sum("pool.limitBytes"));
    assertTrue(store.executors().get(0).removed);
    assertEquals(13L, totals.metricRegistry().getGauges().get("requests").getValue());
  }

  @Test
  void theBoardIsBounded() throws Exception {
    Report report = Figures.report("1", 1);
    for (int i = 0; i < FigureStore.MAX_SHUFFLES + 10; i++) {
      report.number = i + 1;
      report.shuffles.clear();
      report.shuffles.put(i, Figures.counters("requests", 1));
      collector.take(report, 0, null);
    }
    assertEquals(FigureStore.MAX_SHUFFLES, store.shuffles().size());
    assertEquals(10, store.shuffles().get(0).shuffle);
  }

  @Test
  void executorsAreInTheOrderOfTheirNumbers() throws Exception {
    assertTrue(store.isEmpty());
    for (String id : new String[] {"10", "2", "1"}) {
      take(Figures.report(id, 1, "requests", 1));
    }
    assertFalse(store.isEmpty());
    assertEquals("1", store.executors().get(0).executor);
    assertEquals("10", store.executors().get(2).executor);
  }
}
