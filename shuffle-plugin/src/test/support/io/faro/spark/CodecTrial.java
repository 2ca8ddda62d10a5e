package io.faro.spark;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * Queries whose shuffles {@link PackingManager} packs, and the same queries without it. As a program of its own, to be
 * tried on other versions of Spark than that of the tests: docs/design/row-blocks.md says how.
 */
public final class CodecTrial {
  private static final String[] QUERIES = {
    // Rows as they are.
    "SELECT /*+ REPARTITION(6, k) */ * FROM (SELECT id, id % 97 k, IF(id % 5 = 0, NULL, concat('text ', id % 1000, "
        + "repeat('x', CAST(id % 40 AS INT)))) s, CAST(id AS DECIMAL(38, 4)) * 1000000000000 d, "
        + "IF(id % 3 = 0, NULL, CAST(id AS DECIMAL(30, 2))) e, array(id, id + 1) a, timestamp_seconds(id) t, "
        + "IF(id % 7 = 0, NULL, id * 1.5D) f FROM range(0, 6000, 1, 4))",
    "SELECT a.k, count(*), sum(a.id), max(b.s) FROM (SELECT id, id % 97 k FROM range(0, 20000, 1, 4)) a "
        + "JOIN (SELECT id, concat('right ', id) s FROM range(0, 500, 1, 3)) b ON a.k = b.id GROUP BY a.k",
    // Rows without columns.
    "SELECT count(*) FROM (SELECT /*+ REPARTITION(3) */ 1 FROM range(0, 5000, 1, 4))",
  };

  private CodecTrial() {}

  /** The answers, sorted. */
  public static List<String> answers(SparkSession spark, String pack) {
    spark.sparkContext().setLocalProperty(PackingManager.PACK, pack);
    List<String> all = new ArrayList<>();
    for (String query : QUERIES) {
      for (Row row : spark.sql(query).collectAsList()) {
        all.add(row.toString());
      }
    }
    Collections.sort(all);
    return all;
  }

  /** Broadcasts and a query on a thread with the system's class loader, as a common pool's has. */
  private static void onSystemsLoader(SparkSession spark) throws InterruptedException {
    Throwable[] failure = new Throwable[1];
    Thread thread = new Thread(() -> {
      try {
        JavaSparkContext.fromSparkContext(spark.sparkContext()).broadcast(new byte[100]).value();
        spark.sql("SELECT id FROM range(0, 10, 1, 2)").collectAsList();
      } catch (Throwable e) {
        failure[0] = e;
      }
    });
    thread.setContextClassLoader(ClassLoader.getSystemClassLoader());
    thread.start();
    thread.join();
    print("on the system's class loader: " + (failure[0] == null ? "right" : "fails, " + failure[0]));
  }

  private static void print(String line) {
    // lint-ok: Stdout, the program's answer
    System.out.println("TRIAL " + line);
  }

  public static void main(String[] arguments) throws InterruptedException {
    SparkSession spark = SparkSession.builder().getOrCreate();
    try {
      List<String> stock = answers(spark, null);
      List<String> packed = answers(spark, "rows");
      print(stock.size() + " rows: " + (stock.equals(packed) ? "right" : "WRONG"));
    } catch (RuntimeException | Error e) {
      String message = String.valueOf(e.getMessage());
      print("fails, " + message.substring(0, Math.min(600, message.length())));
    }
    onSystemsLoader(spark);
    spark.stop();
  }
}
