package io.faro.demo;

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
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * One side of the demo: a Spark application that runs the query named on each line of its input
 * and answers with one line. Two of them, stock and Faro, take turns on the same machine.
 */
public final class DemoApp {
    private DemoApp() {}

    public static void main(String[] args) throws Exception {
        SparkSession spark = SparkSession.builder().getOrCreate();
        JavaSparkContext jsc = JavaSparkContext.fromSparkContext(spark.sparkContext());
        for (File table : new File(args[0]).listFiles()) {
            String name = table.getName().replace(".parquet", "");
            spark.read().parquet(table.getPath()).createOrReplaceTempView(name);
        }
        System.out.println("DEMO READY");
        BufferedReader input =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] parts = line.split("\t");
            try {
                run(spark, jsc, new File(parts[0]), new File(parts[1]));
            } catch (Exception e) {
                e.printStackTrace();
                System.out.println("DEMO FAILED " + String.valueOf(e.getMessage()).split("\n")[0]);
            }
        }
        spark.stop();
    }

    private static void run(SparkSession spark, JavaSparkContext jsc, File query, File output)
            throws Exception {
        String sql = new String(Files.readAllBytes(query.toPath()), StandardCharsets.UTF_8);
        TreeMap<String, Double> before = counters(jsc);
        long start = System.nanoTime();
        List<Row> rows = spark.sql(sql).collectAsList();
        double seconds = (System.nanoTime() - start) / 1e9;
        TreeMap<String, Double> spent = counters(jsc);
        before.forEach((key, value) -> spent.merge(key, -value, Double::sum));
        try (PrintWriter out = new PrintWriter(output, "UTF-8")) {
            for (Row row : rows) {
                out.println(cells(row));
            }
        }
        System.out.println("DEMO DONE " + seconds + " " + spent);
    }

    /** Doubles are marked: sums of them depend on the order in which blocks arrive. */
    private static String cells(Row row) {
        StringBuilder line = new StringBuilder();
        for (int i = 0; i < row.size(); i++) {
            Object value = row.get(i);
            boolean approximate = value instanceof Double || value instanceof Float;
            line.append(i == 0 ? "" : "\t").append(approximate ? "~" : "=").append(value);
        }
        return line.toString();
    }

    private static TreeMap<String, Double> counters(JavaSparkContext jsc) {
        TreeMap<String, Double> total = new TreeMap<>();
        for (Map<String, Double> one : FaroCounters.ofExecutors(jsc).values()) {
            one.forEach((key, value) -> total.merge(key, value, Double::sum));
        }
        return total;
    }
}
