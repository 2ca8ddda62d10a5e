package io.faro.e2e;

import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.util.LongAccumulator;

/**
 * Cases in which the pods of executors go. Where the test does it, a case prints {@code PODS MAY GO} when it is time for
 * that, and waits for a file that says that it is done. Executors are known by their ids: processes of other pods are
 * not seen here.
 */
public final class PodJobs {
    private static final int MAPS = 8;
    private static final int ROWS = 20_000;
    private static final long SUM = (long) ROWS * (ROWS - 1) / 2;

    private PodJobs() {}

    /** The arguments are a directory that all pods see, and names of cases. */
    public static void main(String[] args) {
        SparkSession spark = SparkSession.builder().getOrCreate();
        Jobs.Context context = new Jobs.Context(spark, new File(args[0]));
        Map<String, Jobs.Case> known = new LinkedHashMap<>();
        known.put("outputsLost", c -> podsGo(c, true));
        known.put("outputsKept", c -> podsGo(c, false));
        known.put("outputsRecovered", PodJobs::recovered);
        known.put("allGivenBack", PodJobs::allGivenBack);
        known.put("idleGivenBack", PodJobs::idleGivenBack);
        int failed = 0;
        for (int i = 1; i < args.length; i++) {
            long start = System.nanoTime();
            try {
                known.get(args[i]).run(context);
                System.out.println("CASE " + args[i] + " OK " + (System.nanoTime() - start) / 1_000_000);
            } catch (Exception | Error e) {
                e.printStackTrace();
                System.out.println("CASE " + args[i] + " FAILED " + e.getClass().getSimpleName() + ": "
                    + String.valueOf(e.getMessage()).split("\n")[0]);
                failed++;
            }
        }
        spark.stop();
        System.out.println("JOBS DONE");
        System.exit(failed == 0 ? 0 : 1);
    }

    /**
     * Two shuffles, of objects and of rows, are read again when pods have gone. Whether their map tasks run again says
     * whether the outputs of those pods are lost.
     */
    private static void podsGo(Jobs.Context c, boolean lost) throws Exception {
        LongAccumulator maps = c.jsc.sc().longAccumulator("map tasks");
        JavaPairRDD<Integer, Iterable<Long>> grouped = grouped(c, maps);
        JavaRDD<Long> rows = rows(c, maps);
        Set<String> first = executors(c.jsc, 2);
        Check.equal("before", RddCases.expected(), digests(grouped));
        Check.equal("sum of rows before", SUM, (long) rows.reduce(Long::sum));
        Check.equal("map tasks", 2L * MAPS, (long) maps.value());
        System.out.println("PODS MAY GO");
        Check.awaitFile(new File(c.scratch, "pods-gone"));
        Check.await("executors that were not there", () -> !first.containsAll(executors(c.jsc, 2)));
        Check.equal("after", RddCases.expected(), digests(grouped));
        Check.equal("sum of rows after", SUM, (long) rows.reduce(Long::sum));
        System.out.println("MAPS " + maps.value() + " of " + 2 * MAPS);
        Check.equal("map tasks ran again", lost, maps.value() > 2L * MAPS);
    }

    /**
     * A pod goes, and the next one has its volume: it recovers the map outputs when it writes for the first time, and no
     * map task runs again.
     */
    private static void recovered(Jobs.Context c) throws Exception {
        LongAccumulator maps = c.jsc.sc().longAccumulator("map tasks");
        Set<String> first = executors(c.jsc, 2);
        MapOutputTrackerMaster tracker = (MapOutputTrackerMaster) SparkEnv.get().mapOutputTracker();
        int begin = newest(tracker) + 1;
        JavaPairRDD<Integer, Iterable<Long>> grouped = grouped(c, maps);
        JavaRDD<Long> rows = rows(c, maps);
        Check.equal("before", RddCases.expected(), digests(grouped));
        Check.equal("sum of rows before", SUM, (long) rows.reduce(Long::sum));
        int end = newest(tracker) + 1;
        int before = outputs(tracker, begin, end);
        Check.equal("outputs", 2 * MAPS, before);
        System.out.println("PODS MAY GO");
        Check.awaitFile(new File(c.scratch, "pods-gone"));
        Check.await("outputs should be lost", () -> outputs(tracker, begin, end) < before);
        Check.await("executors that were not there", () -> !first.containsAll(executors(c.jsc, 2)));
        Check.await("the outputs should be recovered", () -> {
            c.spark.range(0, 1_000, 1, MAPS).repartition(4).count();
            return outputs(tracker, begin, end) == before;
        });
        Check.equal("after", RddCases.expected(), digests(grouped));
        Check.equal("sum of rows after", SUM, (long) rows.reduce(Long::sum));
        Check.equal("map tasks in all", 2L * MAPS, (long) maps.value());
    }

    /** Idle executors go, all of them, and others read what they wrote. */
    private static void allGivenBack(Jobs.Context c) throws Exception {
        LongAccumulator maps = c.jsc.sc().longAccumulator("map tasks");
        JavaPairRDD<Integer, Iterable<Long>> grouped = grouped(c, maps);
        JavaRDD<Long> rows = rows(c, maps);
        Set<String> first = executors(c.jsc, 2);
        Check.equal("before", RddCases.expected(), digests(grouped));
        Check.equal("sum of rows before", SUM, (long) rows.reduce(Long::sum));
        Check.await("all executors should be given back", () -> Executors.registered(c.jsc) == 0);
        Check.equal("after", RddCases.expected(), digests(grouped));
        Check.equal("sum of rows after", SUM, (long) rows.reduce(Long::sum));
        Check.that("others should run now", Collections.disjoint(first, executors(c.jsc, 1)));
        System.out.println("MAPS " + maps.value() + " of " + 2 * MAPS);
        Check.equal("map tasks in all", 2L * MAPS, (long) maps.value());
    }

    /** An executor that wrote nothing goes when it is idle; those that are idle as well but have outputs stay. */
    private static void idleGivenBack(Jobs.Context c) throws Exception {
        LongAccumulator maps = c.jsc.sc().longAccumulator("map tasks");
        JavaPairRDD<Integer, Iterable<Long>> grouped = grouped(c, maps);
        JavaRDD<Long> rows = rows(c, maps);
        executors(c.jsc, 2);
        Check.equal("before", RddCases.expected(), digests(grouped));
        Check.equal("sum of rows before", SUM, (long) rows.reduce(Long::sum));
        Set<String> writers = new TreeSet<>(Arrays.asList(writers(c).list()));
        File seen = new File(c.scratch, "executors-seen");
        Check.that("scratch directory " + seen, seen.mkdirs());
        // One task more than there are executors with outputs, and none ends before the last one runs.
        List<Integer> tasks = new ArrayList<>();
        for (int i = 0; i <= writers.size(); i++) {
            tasks.add(i);
        }
        int all = tasks.size();
        c.jsc.parallelize(tasks, all).foreach(i -> {
            new File(seen, SparkEnv.get().executorId()).createNewFile();
            Check.await("an executor without outputs should join", () -> seen.list().length >= all);
        });
        Check.await("those without outputs should be given back",
            () -> Executors.registered(c.jsc) == writers.size());
        Check.equal("after", RddCases.expected(), digests(grouped));
        Check.equal("sum of rows after", SUM, (long) rows.reduce(Long::sum));
        System.out.println("MAPS " + maps.value() + " of " + 2 * MAPS);
        Check.equal("map tasks in all", 2L * MAPS, (long) maps.value());
    }

    private static JavaPairRDD<Integer, Iterable<Long>> grouped(Jobs.Context c, LongAccumulator maps) {
        File writers = writers(c);
        return RddCases.pairs(c.jsc, MAPS).mapPartitionsToPair(records -> {
            maps.add(1);
            new File(writers, SparkEnv.get().executorId()).createNewFile();
            return records;
        }).groupByKey(6);
    }

    private static JavaRDD<Long> rows(Jobs.Context c, LongAccumulator maps) {
        File writers = writers(c);
        return c.spark.range(0, ROWS, 1, MAPS).mapPartitions((MapPartitionsFunction<Long, Long>) ids -> {
            maps.add(1);
            new File(writers, SparkEnv.get().executorId()).createNewFile();
            return ids;
        }, Encoders.LONG()).repartition(6).javaRDD();
    }

    /** A directory with a file for each executor that ran a map task. */
    private static File writers(Jobs.Context c) {
        File found = new File(c.scratch, "writers");
        Check.that("scratch directory " + found, found.isDirectory() || found.mkdirs());
        found.setWritable(true, false);
        return found;
    }

    /** The greatest id of a shuffle that Spark knows; older ones may have been removed. */
    private static int newest(MapOutputTrackerMaster tracker) {
        int id = 10_000;
        while (id >= 0 && !tracker.containsShuffle(id)) {
            id--;
        }
        return id;
    }

    /** Map outputs of these shuffles that Spark knows a place of. */
    private static int outputs(MapOutputTrackerMaster tracker, int begin, int end) {
        int known = 0;
        for (int shuffle = begin; shuffle < end; shuffle++) {
            known += tracker.getNumAvailableOutputs(shuffle);
        }
        return known;
    }

    /** Ids of executors that ran tasks, when there are so many. */
    private static Set<String> executors(JavaSparkContext jsc, int count) throws Exception {
        List<Integer> tasks = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            tasks.add(i);
        }
        Set<String> found = new TreeSet<>();
        Check.await(count + " executors should run tasks", () -> {
            found.clear();
            found.addAll(jsc.parallelize(tasks, tasks.size()).map(i -> SparkEnv.get().executorId()).distinct(1).collect());
            return found.size() >= count;
        });
        return found;
    }

    private static Map<Integer, List<Long>> digests(JavaPairRDD<Integer, Iterable<Long>> grouped) {
        return new HashMap<>(grouped.mapValues(RddCases::digest).collectAsMap());
    }
}
