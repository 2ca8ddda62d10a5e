package io.faro.tpcds;

import io.faro.e2e.FaroCounters;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * A Spark application that obeys one command a line, so that two of them, stock and Faro, can take
 * turns on one machine. Its argument is the folder of the tables. Answers start with QUERY.
 *
 * <pre>
 *   conf KEY VALUE      done
 *   run SQLFILE OUTPUT  done SECONDS ROWS TASKS SHUFFLE {counter=value, ...}
 * </pre>
 *
 * TASKS are the seconds of all tasks, SHUFFLE those of them that Spark counts as waiting for
 * fetches and as writing shuffle files; the counters are what Faro's executors counted.
 * The plan that the query ended with goes to OUTPUT.plan, see PlanText.
 *
 * <p>Words are separated by tabs. A command that fails is answered by {@code failed MESSAGE}.
 */
public final class QueryApp {
    private QueryApp() {}

    public static void main(String[] args) throws Exception {
        SparkSession spark = SparkSession.builder().getOrCreate();
        JavaSparkContext jsc = JavaSparkContext.fromSparkContext(spark.sparkContext());
        for (File table : new File(args[0]).listFiles()) {
            String name = table.getName().replace(".parquet", "");
            spark.read().parquet(table.getPath()).createOrReplaceTempView(name);
        }
        TaskTimes times = new TaskTimes();
        spark.sparkContext().addSparkListener(times);
        System.out.println("QUERY ready");
        BufferedReader input =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String answer;
            try {
                answer = "done " + obey(line.split("\t"), spark, jsc, times);
            } catch (Exception e) {
                e.printStackTrace();
                answer = "failed " + String.valueOf(e.getMessage()).split("\n")[0];
            }
            System.out.println("QUERY " + answer);
        }
        spark.stop();
    }

    private static String obey(
            String[] words, SparkSession spark, JavaSparkContext jsc, TaskTimes times)
            throws Exception {
        switch (words[0]) {
            case "conf":
                spark.conf().set(words[1], words[2]);
                return "";
            case "run":
                return run(spark, jsc, times, new File(words[1]), new File(words[2]));
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static String run(
            SparkSession spark, JavaSparkContext jsc, TaskTimes times, File query, File output)
            throws Exception {
        String sql = new String(Files.readAllBytes(query.toPath()), StandardCharsets.UTF_8);
        TreeMap<String, Double> before = counters(jsc);
        // Spark tells listeners of tasks later than it lets the caller go.
        spark.sparkContext().listenerBus().waitUntilEmpty();
        times.clear();
        long start = System.nanoTime();
        Dataset<Row> asked = spark.sql(sql);
        List<Row> rows = asked.collectAsList();
        double seconds = (System.nanoTime() - start) / 1e9;
        spark.sparkContext().listenerBus().waitUntilEmpty();
        String tasks = times.summary();
        TreeMap<String, Double> spent = counters(jsc);
        before.forEach((key, value) -> spent.merge(key, -value, Double::sum));
        AnswerFile.write(rows, output);
        try (PrintWriter out = new PrintWriter(output + ".plan", "UTF-8")) {
            PlanText.write(asked, out);
        }
        return seconds + " " + rows.size() + " " + tasks + " " + spent;
    }

    private static TreeMap<String, Double> counters(JavaSparkContext jsc) {
        TreeMap<String, Double> total = new TreeMap<>();
        for (Map<String, Double> one : FaroCounters.ofExecutors(jsc).values()) {
            one.forEach((key, value) -> total.merge(key, value, Double::sum));
        }
        return total;
    }
}
