package io.faro.spark.ui;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.StageInfo;
import org.junit.jupiter.api.Test;
import scala.Option;
import scala.collection.JavaConverters;
import scala.collection.Seq;

class FetchWaitsTest {
  private final FetchWaits waits = new FetchWaits();

  private static <T> Seq<T> seq(List<T> elements) {
    return JavaConverters.asScalaBuffer(elements);
  }

  /** {@code shuffle} is what the stage writes; {@code null}: it is the last of its job. */
  private static StageInfo stage(int id, Integer shuffle, long waitedMillis, Object... parents) {
    TaskMetrics metrics = new TaskMetrics();
    metrics.shuffleReadMetrics().incFetchWaitTime(waitedMillis);
    return new StageInfo(id, 0, "stage", 1, seq(new ArrayList<>()), seq(Arrays.asList(parents)), "", metrics,
        seq(new ArrayList<>()), Option.apply(shuffle), 0, false, 0);
  }

  private void start(StageInfo... stages) throws Exception {
    start(null, stages);
  }

  private void start(Properties properties, StageInfo... stages) throws Exception {
    waits.jobStarted(new SparkListenerJobStart(0, 0, seq(Arrays.asList(stages)), properties));
  }

  @Test
  void aStagesWaitCountsForEachShuffleThatItReads() throws Exception {
    StageInfo join = stage(3, null, 25, 1, 2);
    start(stage(1, 11, 0), stage(2, 12, 0), join);
    Map<Integer, Long> expected = new HashMap<>();
    expected.put(11, 25_000_000L);
    expected.put(12, 25_000_000L);
    assertEquals(expected, waits.ofStage(join));
    assertEquals(Collections.emptyMap(), waits.ofStage(stage(1, 11, 0)), "it reads no shuffle");
  }

  @Test
  void aJobWithoutAShuffleIsNone() throws Exception {
    start(stage(1, null, 0));
    assertFalse(waits.sawShuffle());
    start(stage(2, 7, 0));
    assertTrue(waits.sawShuffle());
  }

  @Test
  void aShuffleBelongsToTheQueryThatFirstRanIt() throws Exception {
    Properties query = new Properties();
    query.setProperty("spark.sql.execution.id", "4");
    start(query, stage(1, 11, 0));
    query.setProperty("spark.sql.execution.id", "5");
    start(query, stage(2, 11, 0), stage(3, 12, 0));
    start(new Properties(), stage(4, 13, 0));
    assertEquals(4, waits.queryOf(11));
    assertEquals(5, waits.queryOf(12));
    assertEquals(ShuffleFigures.NO_QUERY, waits.queryOf(13));
  }

  @Test
  void oldStagesAreForgotten() throws Exception {
    for (int id = 0; id <= FetchWaits.MAX_STAGES; id++) {
      start(stage(id, id, 0));
    }
    assertEquals(Collections.emptyMap(), waits.ofStage(stage(-1, null, 5, 0)));
    assertEquals(Collections.singletonMap(FetchWaits.MAX_STAGES, 5_000_000L),
        waits.ofStage(stage(-1, null, 5, FetchWaits.MAX_STAGES)));
  }
}
