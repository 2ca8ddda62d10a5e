package io.faro.e2e;

import java.io.File;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Encoders;
import org.apache.spark.util.LongAccumulator;

/** Executors that come and go by Spark's own doing. */
final class ElasticCases {
    private ElasticCases() {}

    static void register(Map<String, Jobs.Case> cases) {
        cases.put("speculation", c -> speculation(c.jsc, new File(c.scratch, "second-attempt")));
        cases.put("dynamicAllocation", c -> dynamicAllocation(c.jsc, c.scratch));
        cases.put("decommissionUnused", c -> decommissionUnused(c.jsc));
        cases.put("decommission", c -> decommission(c, 1));
        cases.put("decommissionAll", c -> decommission(c, 2));
    }

    /** One attempt of one map task ends only after Spark has started another one. */
    private static void speculation(JavaSparkContext jsc, File second) {
        JavaPairRDD<Integer, Long> slow = RddCases.pairs(jsc, 8).mapPartitionsToPair(records -> {
            if (TaskContext.getPartitionId() == 3) {
                if (TaskContext.get().attemptNumber() == 0) {
                    Check.awaitFile(second);
                } else {
                    second.createNewFile();
                }
            }
            return records;
        });
        Check.equal("groups", RddCases.expected(), digests(slow.groupByKey(6)));
        Check.that("a second attempt should have run", second.exists());
    }

    /** Grows from one executor to two in mid-stage, shrinks when idle, and still has the answer. */
    private static void dynamicAllocation(JavaSparkContext jsc, File scratch) throws Exception {
        File seen = new File(scratch, "executors-seen");
        Check.that("scratch directory " + seen, seen.mkdirs());
        JavaPairRDD<Integer, Iterable<Long>> grouped = RddCases.pairs(jsc, 8)
            .mapPartitionsToPair(records -> {
                new File(seen, Executors.pid()).createNewFile();
                // The first map task waits until an executor that was not there has joined in.
                if (TaskContext.getPartitionId() == 0) {
                    Check.await("a second executor should join",
                        () -> seen.list().length >= 2);
                }
                return records;
            }).groupByKey(6);
        Check.equal("while growing", RddCases.expected(), digests(grouped));
        Check.await("should shrink to one executor", () -> Executors.registered(jsc) == 1);
        Check.equal("after shrinking", RddCases.expected(), digests(grouped));
    }

    /** An executor that ran no shuffle task is decommissioned; the others shuffle. */
    private static void decommissionUnused(JavaSparkContext jsc) throws Exception {
        String leaving = Executors.pids(jsc, 3).values().iterator().next();
        Executors.signal(leaving, "PWR");
        Check.equal("while it leaves", RddCases.expected(),
            digests(RddCases.pairs(jsc, 8).groupByKey(6)));
        Check.await("the decommissioned executor should end",
            () -> !Executors.alive(leaving));
        Check.equal("after", RddCases.expected(), digests(RddCases.pairs(jsc, 8).groupByKey(7)));
    }

    /**
     * Decommissioned executors hand their shuffle files on, to another executor, or to the fall-back storage if all of
     * them leave: RDDs and Spark SQL find their blocks there, and no map task runs again.
     */
    private static void decommission(Jobs.Context c, int leaving) throws Exception {
        LongAccumulator maps = c.jsc.sc().longAccumulator("map tasks");
        JavaPairRDD<Integer, Iterable<Long>> grouped = RddCases.pairs(c.jsc, 8)
            .mapPartitionsToPair((Iterator<scala.Tuple2<Integer, Long>> records) -> {
                maps.add(1);
                return records;
            }).groupByKey(6);
        JavaRDD<Long> rows = c.spark.range(0, 20_000, 1, 8)
            .mapPartitions((MapPartitionsFunction<Long, Long>) ids -> {
                maps.add(1);
                return ids;
            }, Encoders.LONG()).repartition(6).javaRDD();
        long sum = 20_000L * 19_999 / 2;
        Check.equal("before", RddCases.expected(), digests(grouped));
        Check.equal("sum of rows before", sum, (long) rows.reduce(Long::sum));
        // Faro's writer wrote the outputs that are handed on.
        Check.that("rows are written by Faro", FaroCounters.total(c.jsc, "rowWriters") != 0);
        Check.that("they are packed", FaroCounters.total(c.jsc, "rowBlocks") != 0);
        long before = maps.value();
        List<String> pids = new ArrayList<>(Executors.pids(c.jsc, 2).values()).subList(0, leaving);
        for (String pid : pids) {
            Executors.signal(pid, "PWR");
        }
        Check.await("the decommissioned executors should end", () -> pids.stream().noneMatch(Executors::alive));
        Check.equal("after", RddCases.expected(), digests(grouped));
        Check.equal("sum of rows after", sum, (long) rows.reduce(Long::sum));
        Check.equal("map tasks run", before, (long) maps.value());
    }

    private static Map<Integer, List<Long>> digests(JavaPairRDD<Integer, Iterable<Long>> grouped) {
        return new HashMap<>(grouped.mapValues(RddCases::digest).collectAsMap());
    }
}
