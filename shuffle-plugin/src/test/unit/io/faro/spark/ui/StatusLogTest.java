package io.faro.spark.ui;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class StatusLogTest {
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

  private final LogLines lines = new LogLines();
  private final List<ExecutorFigures> executors = new ArrayList<>();
  private final Map<String, Long> sums = new TreeMap<>();
  private long now = Long.MAX_VALUE - SECOND;
  private final StatusLog log = new StatusLog(lines.logger(), () -> now);

  private void executor(String problem) {
    ExecutorFigures figures = Figures.executor(Integer.toString(executors.size()));
    figures.problem = problem;
    executors.add(figures);
  }

  private void ticks(int seconds) {
    for (int i = 0; i < seconds; i++) {
      now += SECOND;
      log.tick(executors, name -> sums.getOrDefault(name, 0L));
    }
  }

  @Test
  void oneLineSaysWhereFaroDoesNotRun() {
    ticks(5);
    for (int i = 0; i < 12; i++) {
      executor("");
    }
    executor("cannot bind 10.9.9.9");
    executor("cannot bind 10.9.9.9");
    ticks(100);
    assertEquals(
        Arrays.asList("WARN Faro runs on 12 of 14 executors; 2 do not: cannot bind 10.9.9.9"), lines.all());
  }

  @Test
  void aLineComesWhenTheReasonsChangeAndAtMostTwiceAMinute() {
    executor("");
    ticks(2);
    executor("");
    ticks(40);
    assertEquals(Arrays.asList("INFO Faro runs on 1 of 1 executor"), lines.all());
    executor("a");
    ticks(2);
    executor("b");
    ticks(10);
    assertEquals("WARN Faro runs on 2 of 3 executors; 1 does not: a", lines.all().get(1));
    assertEquals(2, lines.all().size());
    ticks(30);
    assertEquals("WARN Faro runs on 2 of 4 executors; 1 does not: a; 1 does not: b", lines.all().get(2));
    executors.removeIf(executor -> !executor.problem.isEmpty());
    ticks(40);
    assertEquals("INFO Faro runs on 2 of 2 executors", lines.all().get(3));
  }

  @Test
  void anApplicationThatEndsEarlyHasTheLineToo() {
    executor("a");
    log.end(executors, name -> 0);
    log.end(executors, name -> 0);
    assertEquals(Arrays.asList("WARN Faro runs on 0 of 1 executor; 1 does not: a"), lines.all());
  }

  @Test
  void executorsThatStartLaterAreInTheNextLineOrInTheLast() {
    executor("a");
    ticks(2);
    executor("");
    ticks(10);
    assertEquals(Arrays.asList("WARN Faro runs on 0 of 1 executor; 1 does not: a"), lines.all());
    ticks(30);
    assertEquals("WARN Faro runs on 1 of 2 executors; 1 does not: a", lines.all().get(1));
    executor("");
    ticks(10);
    assertEquals(2, lines.all().size());
    log.end(executors, name -> 0);
    assertEquals("WARN Faro runs on 2 of 3 executors; 1 does not: a", lines.all().get(2));
  }

  @Test
  void moreReasonsThanALineTakesAreCounted() {
    for (String problem : "a b c d e".split(" ")) {
      executor(problem);
    }
    ticks(2);
    assertTrue(lines.all().get(0).endsWith("1 does not: c; and 2 more reasons"), lines.all().get(0));
  }

  @Test
  void sortsThatAreLeftToSparkAreCountedAndTheDriverIsNoExecutor() {
    executor("");
    ExecutorFigures driver = new ExecutorFigures();
    driver.executor = "driver";
    executors.add(driver);
    sums.put("sparkSorts.expression", 2L);
    sums.put("sparkSorts.memory", 5L);
    ticks(3);
    assertEquals(Arrays.asList("INFO Faro: Spark's own sort has 2 sorts so far: their order begins with an expression",
        "INFO Faro: Spark's own sort has 5 partitions so far: the task had hardly memory"),
        lines.with("own sort"));
    assertEquals(Collections.singletonList("INFO Faro runs on 1 of 1 executor"), lines.with("runs on"));
  }

  @Test
  void aReasonIsLoggedWithItsSumAndAgainWhenThatHasGrownTenfold() {
    sums.put("fallbackReason.timedOut", 3L);
    sums.put("sparkWriters.aggregation", 8L);
    sums.put("sparkReaders.codec", 1L);
    ticks(3);
    assertEquals(3, lines.all().size());
    assertTrue(lines.all().get(0).startsWith("WARN Faro: Spark's own fetch delivered blocks of 3 requests so far, "
        + "because of timedOut: "), lines.all().get(0));
    assertEquals(Collections.singletonList("INFO Faro: Spark's own writer wrote the output of 8 map tasks so far: it "
        + "combines or sorts while writing"), lines.with("writer"));
    sums.put("fallbackReason.timedOut", 29L);
    ticks(3);
    assertEquals(3, lines.all().size());
    sums.put("fallbackReason.timedOut", 30L);
    ticks(3);
    assertEquals(4, lines.all().size());
  }
}
