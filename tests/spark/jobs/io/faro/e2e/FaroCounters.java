package io.faro.e2e;

import com.codahale.metrics.Counter;
import com.codahale.metrics.Gauge;
import com.codahale.metrics.MetricRegistry;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Tuple2;

/**
 * Reads the source {@code faro} of Spark's metrics system in every executor. A killed executor
 * writes no summary line; those that live can always be asked.
 */
public final class FaroCounters {
    private FaroCounters() {}

    /** Counter values by executor id; empty maps where Faro is not there. */
    public static Map<String, TreeMap<String, Double>> ofExecutors(JavaSparkContext jsc) {
        int executors = Math.max(1, jsc.sc().statusTracker().getExecutorInfos().length - 1);
        Map<String, TreeMap<String, Double>> found = new TreeMap<>();
        // A task lands where it lands: ask again until every executor has been seen.
        for (int round = 0; round < 10 && found.size() < executors; round++) {
            List<Integer> tasks = new ArrayList<>();
            for (int i = 0; i < executors * 4; i++) {
                tasks.add(i);
            }
            for (Tuple2<String, TreeMap<String, Double>> one
                    : jsc.parallelize(tasks, tasks.size()).map(ignored -> here()).collect()) {
                found.put(one._1(), one._2());
            }
        }
        return found;
    }

    /** The sum of a counter over the executors; -1 where Faro is not there. */
    static long total(JavaSparkContext jsc, String name) {
        double total = 0;
        for (TreeMap<String, Double> counters : ofExecutors(jsc).values()) {
            if (!counters.containsKey(name)) {
                return -1;
            }
            total += counters.get(name);
        }
        return (long) total;
    }

    private static Tuple2<String, TreeMap<String, Double>> here() throws Exception {
        SparkEnv env = SparkEnv.get();
        TreeMap<String, Double> values = new TreeMap<>();
        // Reflection, because the Seq that this returns has another type in Scala 2.13.
        Method byName = env.metricsSystem().getClass().getMethod("getSourcesByName", String.class);
        Object sources = byName.invoke(env.metricsSystem(), "faro");
        int size = (Integer) sources.getClass().getMethod("size").invoke(sources);
        for (int i = 0; i < size; i++) {
            Object source = sources.getClass().getMethod("apply", int.class).invoke(sources, i);
            Method registryOf = source.getClass().getMethod("metricRegistry");
            registryOf.setAccessible(true);
            addAll(values, (MetricRegistry) registryOf.invoke(source));
        }
        return new Tuple2<>(env.executorId(), values);
    }

    @SuppressWarnings("rawtypes")
    private static void addAll(TreeMap<String, Double> values, MetricRegistry registry) {
        for (Map.Entry<String, Gauge> gauge : registry.getGauges().entrySet()) {
            Object value = gauge.getValue().getValue();
            if (value instanceof Number) {
                values.put(gauge.getKey(), ((Number) value).doubleValue());
            }
        }
        for (Map.Entry<String, Counter> counter : registry.getCounters().entrySet()) {
            values.put(counter.getKey(), (double) counter.getValue().getCount());
        }
    }
}
