package io.faro.bench;

import io.faro.e2e.FaroCounters;
import io.faro.tpcds.AnswerFile;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import scala.Tuple2;

/**
 * One side of the Spark measurements: an application that obeys one command a line, so that several of them can take
 * turns on one machine. Its answers start with {@code BENCH}.
 *
 * <pre>
 *   run WORKLOAD DIVISOR   jobMillis=... reduceMillis=... ...
 *   read WORKLOAD          the same of one that reads tables
 *   digest WORKLOAD OUTPUT writes what its rows are; the same figures as `run`
 *   write FOLDER DIVISOR   makes the tables of those
 *   tables FOLDER...       makes a view of each Parquet file or folder in them
 *   query FILE [OUTPUT]    collects the answer to the SQL in it, and writes it; the same figures as `run`
 *   clean                  deletes past shuffles' files
 *   killed WORKLOAD DIVISOR VICTIMS EXECUTORS   jobMillis=... againTasks=... ..., see KilledJob
 *   tail DIVISOR           jobMillis=... executorMillis=... ..., see TailJob
 *   executors COUNT        PID PID
 *   counters               name=value, summed over the executors
 * </pre>
 */
public final class WorkloadApp {
  private WorkloadApp() {}

  public static void main(String[] args) throws Exception {
    SparkSession spark = SparkSession.builder().getOrCreate();
    JavaSparkContext context = JavaSparkContext.fromSparkContext(spark.sparkContext());
    StageTimes times = new StageTimes();
    spark.sparkContext().addSparkListener(times);
    ShuffleCleaning cleaning = ShuffleCleaning.of(spark.sparkContext());
    System.out.println("BENCH ready");
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String answer;
      try {
        answer = "done " + obey(line.split(" "), spark, context, times, cleaning);
      } catch (Exception e) {
        e.printStackTrace();
        answer = "failed " + String.valueOf(e).split("\n")[0];
      }
      System.out.println("BENCH " + answer);
    }
    spark.stop();
  }

  private static String obey(String[] words, SparkSession spark, JavaSparkContext context, StageTimes times,
      ShuffleCleaning cleaning) throws Exception {
    switch (words[0]) {
      case "run":
        Workload workload = Workload.valueOf(words[1]);
        int divisor = Integer.parseInt(words[2]);
        return measured(spark, times, words[1], () -> workload.run(spark, divisor));
      case "read":
        TableWorkload reading = TableWorkload.valueOf(words[1]);
        return measured(spark, times, words[1], () -> reading.run(spark));
      case "digest":
        List<Row> digest = new ArrayList<>();
        String spent = measured(spark, times, words[1],
            () -> digest.addAll(TableWorkload.valueOf(words[1]).digest(spark)));
        AnswerFile.write(digest, new File(words[2]));
        return spent;
      case "write":
        TableWorkload.writeTables(spark, words[1], Integer.parseInt(words[2]));
        return "";
      case "tables":
        for (int i = 1; i < words.length; i++) {
          for (File table : new File(words[i]).listFiles()) {
            String name = table.getName().replace(".parquet", "");
            spark.read().parquet(table.getPath()).createOrReplaceTempView(name);
          }
        }
        return "";
      case "query":
        String sql = new String(Files.readAllBytes(Paths.get(words[1])), StandardCharsets.UTF_8);
        String name = new File(words[1]).getName().replace(".sql", "");
        List<Row> rows = new ArrayList<>();
        String figures = measured(spark, times, name, () -> rows.addAll(spark.sql(sql).collectAsList()));
        if (words.length > 2) {
          AnswerFile.write(rows, new File(words[2]));
        }
        return figures;
      case "clean":
        return String.valueOf(cleaning.awaitOne());
      case "executors":
        return String.join(" ", executorPids(context, Integer.parseInt(words[1])).values());
      case "killed":
        return new KilledJob(spark, context, Workload.valueOf(words[1]), Integer.parseInt(words[2]))
            .run(Integer.parseInt(words[3]), Integer.parseInt(words[4]));
      case "tail":
        return new TailJob(context, Integer.parseInt(words[1])).run();
      case "counters":
        TreeMap<String, Double> total = new TreeMap<>();
        for (Map<String, Double> one : FaroCounters.ofExecutors(context).values()) {
          one.forEach((key, value) -> total.merge(key, value, Double::sum));
        }
        return String.valueOf(total);
      default:
        throw new IllegalArgumentException(words[0]);
    }
  }

  private static String measured(SparkSession spark, StageTimes times, String name, Runnable job) throws Exception {
    times.clear();
    // Event logs name the jobs of one workload or query by this description.
    spark.sparkContext().setJobDescription(name);
    long start = System.nanoTime();
    job.run();
    long millis = (System.nanoTime() - start) / 1_000_000;
    spark.sparkContext().setJobDescription(null);
    // Spark returns to the caller before it has told the listeners.
    spark.sparkContext().listenerBus().waitUntilEmpty();
    return "jobMillis=" + millis + " " + times.summary();
  }

  /**
   * Returns process ids by executor. Spark chooses where a task runs, so tasks run until {@code count} executors have
   * answered.
   */
  static Map<String, String> executorPids(JavaSparkContext context, int count) {
    TreeMap<String, String> pids = new TreeMap<>();
    for (int attempt = 0; attempt < 50 && pids.size() < count; attempt++) {
      List<Integer> tasks = new ArrayList<>();
      for (int i = 0; i < Math.max(8, count * 4); i++) {
        tasks.add(i);
      }
      for (Tuple2<String, String> one : context.parallelize(tasks, tasks.size()).map(i -> new Tuple2<>(
          SparkEnv.get().executorId(), ManagementFactory.getRuntimeMXBean().getName().split("@")[0])).collect()) {
        pids.put(one._1(), one._2());
      }
    }
    if (pids.size() < count) {
      throw new IllegalStateException("executors that ran tasks: " + pids);
    }
    return pids;
  }
}
