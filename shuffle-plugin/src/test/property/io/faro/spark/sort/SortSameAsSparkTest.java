package io.faro.spark.sort;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.TestLibrary;
import io.faro.spark.metrics.SortCounters;
import io.faro.spark.metrics.SortDeclineReason;
import java.util.List;
import java.util.Random;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/**
 * Random tables are in the same order with Faro's sort as with Spark's. A task that does not give all of its memory
 * back fails.
 */
class SortSameAsSparkTest {
  private static final String KEY = "spark.faro.sort";

  private SparkSession spark;

  @BeforeAll
  static void load() throws Exception {
    TestLibrary.load();
  }

  private void start(String memory) {
    spark = SparkSession.builder().master("local[1]").appName("faro")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "localhost")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.datetime.java8API.enabled", "true")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.autoBroadcastJoinThreshold", "-1")
        .config("spark.unsafe.exceptionOnMemoryLeak", "true")
        .config("spark.buffer.pageSize", "64k")
        .config("spark.testing.reservedMemory", "0")
        .config("spark.testing.memory", memory)
        .config("spark.shuffle.manager", "io.faro.spark.FaroShuffleManager")
        .config(KEY, "false")
        .getOrCreate();
  }

  @AfterEach
  void stop() {
    spark.stop();
    SparkSession.clearDefaultSession();
    SparkSession.clearActiveSession();
  }

  private List<Row> rows(boolean faro, Dataset<Row> table, String query) {
    spark.conf().set(KEY, Boolean.toString(faro));
    table.createOrReplaceTempView("t");
    Dataset<Row> sorted = spark.sql(query);
    List<Row> rows = sorted.collectAsList();
    String plan = sorted.queryExecution().executedPlan().toString();
    if (!faro) {
      assertTrue(!plan.contains("FaroSort"), plan);
    }
    return rows;
  }

  private void compare(String what, Dataset<Row> table, String query) {
    List<Row> expected = rows(false, table, query);
    List<Row> actual = rows(true, table, query);
    assertEquals(expected.size(), actual.size(), what);
    for (int i = 0; i < expected.size(); i++) {
      assertEquals(expected.get(i), actual.get(i), i + " of " + what);
    }
  }

  @Test
  void rowsAreInSparksOrder() {
    start(Long.toString(1L << 30));
    long before = SortCounters.SORTS.sum();
    for (int seed = 0; seed < 60; seed++) {
      Random random = new Random(seed);
      // From none to some thousand rows, in up to 7 partitions, of which some may be empty.
      RandomTable table = new RandomTable(random, random.nextInt(new int[] {1, 8, 3_000, 9_000}[random.nextInt(4)]));
      spark.conf().set("spark.sql.adaptive.enabled", Boolean.toString(random.nextBoolean()));
      compare(seed + ": " + table, spark.createDataFrame(table.rows, table.schema),
          "select /*+ repartition(" + (1 + random.nextInt(7)) + ", id) */ * from t sort by "
              + String.join(", ", table.order));
    }
    assertTrue(SortCounters.SORTS.sum() - before > 100, "sorts of Faro's");
    assertEquals(0, SortCounters.sum(SortDeclineReason.NO_LIBRARY));
    assertEquals(0, SortCounters.sum(SortDeclineReason.FAULT));
    assertEquals(0, SortCounters.sum(SortDeclineReason.EXECUTORS));
    assertTrue(SortCounters.sum(SortDeclineReason.TYPE) > 0, "sorts by a column that is Spark's");
    assertTrue(SortCounters.sum(SortDeclineReason.EXPRESSION) > 0, "sorts by an expression");
  }

  @Test
  void whereMemoryEndsRunsAreMerged() {
    long before = SortCounters.RUNS.sum();
    compareWithMemory(4L << 20, 4);
    assertTrue(SortCounters.RUNS.sum() - before > 2, "runs on disk");
  }

  @Test
  void withHardlyMemorySparksSorterGoesOn() {
    long before = SortCounters.sum(SortDeclineReason.MEMORY);
    compareWithMemory(1L << 20, 1);
    assertTrue(SortCounters.sum(SortDeclineReason.MEMORY) - before > 0, "sorts that ended without memory");
  }

  private void compareWithMemory(long bytes, int seeds) {
    start(Long.toString(bytes));
    for (int seed = 0; seed < seeds; seed++) {
      Random random = new Random(1_000 + seed);
      RandomTable table = new RandomTable(random, 4_000 + random.nextInt(40_000));
      Dataset<Row> rows = spark.createDataFrame(table.rows, table.schema).repartition(2);
      String order = String.join(", ", table.order);
      compare(seed + ": " + table, rows, "select /*+ repartition(1) */ * from t sort by " + order);
      compare(seed + ": join of " + table, rows, "select * from (select /*+ MERGE(b) */ a.*, b.id other from t a "
          + "join t b on a.id = b.id and a.id % 7 = b.id % 7) order by " + order);
    }
  }
}
