package io.faro.e2e;

import java.io.File;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.util.LongAccumulator;

/** Executors that come and go by Spark's own doing. */
final class ElasticCases {
    private ElasticCases() {}

    static void register(Map<String, Jobs.Case> cases) {
        cases.put("speculation", c -> speculation(c.jsc, new File(c.scratch, "second-attempt")));
        cases.put("dynamicAllocation", c -> dynamicAllocation(c.jsc, c.scratch));
        cases.put("decommissionUnused", c -> decommissionUnused(c.jsc));
        cases.put("decommission", c -> decommission(c.jsc));
    }

    /** One attempt of one map task ends only after Spark has started another one. */
    private static void speculation(JavaSparkContext jsc, File second) {
        JavaPairRDD<Integer, Long> slow = RddCases.pairs(jsc, 8).mapPartitionsToPair(records -> {
            if (TaskContext.getPartitionId() == 3) {
                if (TaskContext.get().attemptNumber() == 0) {
                    Check.awaitFile(second, 60);
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
                    Check.await("a second executor should join", 90,
                        () -> seen.list().length >= 2);
                }
                return records;
            }).groupByKey(6);
        Check.equal("while growing", RddCases.expected(), digests(grouped));
        Check.await("should shrink to one executor", 90, () -> Executors.registered(jsc) == 1);
        Check.equal("after shrinking", RddCases.expected(), digests(grouped));
    }

    /** An executor that ran no shuffle task is decommissioned; the others shuffle. */
    private static void decommissionUnused(JavaSparkContext jsc) throws Exception {
        String leaving = Executors.pids(jsc, 3).values().iterator().next();
        Executors.signal(leaving, "PWR");
        Check.equal("while it leaves", RddCases.expected(),
            digests(RddCases.pairs(jsc, 8).groupByKey(6)));
        Check.await("the decommissioned executor should end", 120,
            () -> !Executors.alive(leaving));
        Check.equal("after", RddCases.expected(), digests(RddCases.pairs(jsc, 8).groupByKey(7)));
    }

    /** A decommissioned executor hands its shuffle files on: no map task runs again. */
    private static void decommission(JavaSparkContext jsc) throws Exception {
        LongAccumulator maps = jsc.sc().longAccumulator("map tasks");
        JavaPairRDD<Integer, Iterable<Long>> grouped = RddCases.pairs(jsc, 8)
            .mapPartitionsToPair((Iterator<scala.Tuple2<Integer, Long>> records) -> {
                maps.add(1);
                return records;
            }).groupByKey(6);
        Check.equal("before", RddCases.expected(), digests(grouped));
        long before = maps.value();
        String leaving = Executors.pids(jsc, 2).values().iterator().next();
        Executors.signal(leaving, "PWR");
        Check.await("the decommissioned executor should end", 120,
            () -> !Executors.alive(leaving));
        Check.equal("after", RddCases.expected(), digests(grouped));
        Check.equal("map tasks run", before, (long) maps.value());
    }

    private static Map<Integer, List<Long>> digests(JavaPairRDD<Integer, Iterable<Long>> grouped) {
        return new HashMap<>(grouped.mapValues(RddCases::digest).collectAsMap());
    }
}
