package io.faro.bench;

import io.faro.Faro;
import io.faro.spark.write.RowWriters;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.shuffle.sort.SortShuffleManager;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import scala.Product2;

/**
 * Measures the CPU of one map task of a repartition with Spark's writer, with Faro's, and without a writer. The three
 * take turns in one task of one process. Prints {@code partitions rows drain spark faro sparkBytes faroBytes}: medians,
 * in microseconds.
 *
 * <p>Arguments: rows, rounds, numbers of partitions.
 */
public final class MapWrites {
    private static final String[] SIDES = {"drain", "spark", "faro"};
    /** The dependency for the task, in local mode. */
    private static ShuffleDependency<Object, Object, Object> dependency;
    private static RowWriters writers;
    private static int rounds;
    private static String result;

    private MapWrites() {}

    public static void main(String[] args) throws Exception {
        Faro.ensureAvailability();
        long rows = Long.parseLong(args[0]);
        rounds = Integer.parseInt(args[1]);
        SparkSession spark = SparkSession.builder().master("local[1]").config("spark.ui.enabled", "false")
            .config("spark.sql.adaptive.enabled", "false").getOrCreate();
        writers = new RowWriters(spark.sparkContext().conf(), true, () -> null, () -> { }, why -> {
            throw new IllegalStateException("not written by Faro: " + why);
        });
        JavaSparkContext context = JavaSparkContext.fromSparkContext(spark.sparkContext());
        for (int i = 2; i < args.length; i++) {
            dependency = exchange(spark, rows, Integer.parseInt(args[i]));
            context.parallelize(Collections.singletonList(0), 1).foreach(none -> result = measure());
            System.out.println("MEASURED " + args[i] + " " + rows + " " + result);
        }
        spark.stop();
    }

    @SuppressWarnings("unchecked")
    private static ShuffleDependency<Object, Object, Object> exchange(SparkSession spark, long rows, int partitions) {
        SparkPlan plan = spark.range(0, rows, 1, 1).selectExpr("id", "hash(id) h").repartition(partitions)
            .queryExecution().executedPlan();
        while (!(plan instanceof ShuffleExchangeExec)) {
            plan = (SparkPlan) plan.children().head();
        }
        return (ShuffleDependency<Object, Object, Object>) (Object) ((ShuffleExchangeExec) plan).shuffleDependency();
    }

    private static String measure() throws Exception {
        List<List<Long>> times = new ArrayList<>();
        for (int side = 0; side < SIDES.length; side++) {
            times.add(new ArrayList<>());
        }
        long[] bytes = new long[SIDES.length];
        ThreadMXBean cpu = ManagementFactory.getThreadMXBean();
        // A third of the rounds warm up.
        for (int round = 0; round < rounds + rounds / 2; round++) {
            for (int turn = 0; turn < SIDES.length; turn++) {
                int side = (turn + round) % SIDES.length;
                long started = cpu.getCurrentThreadCpuTime();
                bytes[side] = write(SIDES[side], 1L + (long) round * SIDES.length + side);
                if (round >= rounds / 2) {
                    times.get(side).add((cpu.getCurrentThreadCpuTime() - started) / 1000);
                }
            }
        }
        StringBuilder text = new StringBuilder();
        for (List<Long> each : times) {
            Collections.sort(each);
            text.append(each.get(each.size() / 2)).append(' ');
        }
        return text.append(bytes[1]).append(' ').append(bytes[2]).toString();
    }

    /** Writes a map output and returns the bytes of its data file. */
    private static long write(String side, long mapId) throws Exception {
        TaskContext task = TaskContext.get();
        RDD<? extends Product2<Object, Object>> source = dependency.rdd();
        @SuppressWarnings("unchecked")
        scala.collection.Iterator<Product2<Object, Object>> rows =
            (scala.collection.Iterator<Product2<Object, Object>>) source.iterator(source.partitions()[0], task);
        if (side.equals("drain")) {
            while (rows.hasNext()) {
                rows.next();
            }
            return 0;
        }
        SortShuffleManager manager = (SortShuffleManager) SparkEnv.get().shuffleManager();
        IndexShuffleBlockResolver resolver = manager.shuffleBlockResolver();
        ShuffleWriteMetricsReporter metrics = task.taskMetrics().shuffleWriteMetrics();
        ShuffleWriter<Object, Object> writer = side.equals("spark")
            ? manager.getWriter(dependency.shuffleHandle(), mapId, task, metrics)
            : writers.writer(dependency.shuffleHandle(), mapId, task, metrics, resolver);
        writer.write(rows);
        writer.stop(true);
        long bytes = 0;
        for (long length : writer.getPartitionLengths()) {
            bytes += length;
        }
        resolver.removeDataByMap(dependency.shuffleId(), mapId);
        return bytes;
    }
}
