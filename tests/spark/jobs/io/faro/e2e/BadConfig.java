package io.faro.e2e;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;

/**
 * Wrong values of Faro's keys: the application must not start, and the message must have the key,
 * the value and a word of what is allowed. The list comes from the harness, one
 * {@code key<TAB>value<TAB>allowed} a line.
 */
final class BadConfig {
    private BadConfig() {}

    static int run(File scratch) throws Exception {
        int failed = 0;
        for (String line : Files.readAllLines(
                new File(scratch, "bad-values").toPath(), StandardCharsets.UTF_8)) {
            String[] parts = line.split("\t", -1);
            long start = System.nanoTime();
            String problem = problemWith(parts[0], parts[1], parts[2]);
            String name = "CASE " + parts[0] + "=" + parts[1];
            if (problem == null) {
                System.out.println(name + " OK " + (System.nanoTime() - start) / 1_000_000);
            } else {
                System.out.println(name + " FAILED " + problem);
                failed++;
            }
        }
        System.out.println("JOBS DONE");
        return failed == 0 ? 0 : 1;
    }

    private static String problemWith(String key, String value, String allowed) {
        SparkConf conf = new SparkConf().set(key, value).setMaster("local[1]");
        try (JavaSparkContext ignored = new JavaSparkContext(conf)) {
            // On 4.x the manager may be made only when a shuffle is registered.
            RddCases.pairs(ignored, 2).groupByKey(2).count();
            return "the job ran";
        } catch (Throwable thrown) {
            StringBuilder said = new StringBuilder();
            for (Throwable t = thrown; t != null; t = t.getCause()) {
                said.append(t.getMessage()).append(" / ");
            }
            for (String wanted : new String[] {key, value, allowed}) {
                if (said.indexOf(wanted) < 0) {
                    return "the message lacks '" + wanted + "': "
                        + said.toString().split("\n")[0];
                }
            }
            return null;
        }
    }
}
