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

/** Executors that die by {@code kill -9}; the answers must not notice. */
final class FailureCases {
    private FailureCases() {}

    static void register(Map<String, Jobs.Case> cases) {
        cases.put("killBetweenStages", c -> killBetweenStages(c.jsc, true));
        cases.put("killWithService", c -> killBetweenStages(c.jsc, false));
        cases.put("killInReduce", c -> killInReduce(c.jsc, new File(c.scratch, "killed-reduce")));
        cases.put("notInTheClear", c -> notInTheClear(c.jsc));
        cases.put("killInMap", c -> killInMap(c.jsc, new File(c.scratch, "killed-map")));
    }

    /**
     * The second action finds the map stage done. Its outputs are gone with the executor, unless
     * a shuffle service still has them.
     */
    private static void killBetweenStages(JavaSparkContext jsc, boolean outputsGone)
            throws Exception {
        LongAccumulator maps = jsc.sc().longAccumulator("map tasks");
        JavaPairRDD<Integer, Iterable<Long>> grouped = RddCases.pairs(jsc, 8)
            .mapPartitionsToPair(records -> {
                maps.add(1);
                return records;
            }).groupByKey(6);
        Check.equal("before", expected(), digests(grouped));
        long before = maps.value();
        Map<String, String> pids = Executors.pids(jsc, 2);
        String victim = pids.values().iterator().next();
        Executors.signal(victim, "KILL");
        Check.equal("after", expected(), digests(grouped));
        Check.equal("map tasks ran again", outputsGone, maps.value() > before);
    }

    /** The first reducer to come this far dies in the middle of its input. */
    private static void killInReduce(JavaSparkContext jsc, File killed) {
        JavaPairRDD<Integer, List<Long>> digests = RddCases.pairs(jsc, 8)
            .partitionBy(new org.apache.spark.HashPartitioner(6))
            .mapPartitionsToPair(records -> dieOnce(records, 2_000, killed))
            .groupByKey(5).mapValues(RddCases::digest);
        Check.equal("groups", expected(), new HashMap<>(digests.collectAsMap()));
        Check.that("an executor should have been killed", killed.exists());
    }

    private static void killInMap(JavaSparkContext jsc, File killed) throws Exception {
        JavaPairRDD<Integer, Long> dying = RddCases.pairs(jsc, 8)
            .mapPartitionsToPair(records -> TaskContext.getPartitionId() == 6
                ? dieOnce(records, 100, killed) : records);
        Check.equal("groups", expected(), digests(dying.groupByKey(6)));
        Check.that("an executor should have been killed", killed.exists());
        // All of the above may have run on the executor that was left: a shuffle between two that live.
        Executors.pids(jsc, 2);
        Check.equal("groups", expected(), digests(RddCases.pairs(jsc, 8).groupByKey(6)));
    }

    /**
     * Where Faro delivers nothing and Spark's own fetch would send in the clear, the job fails, and says which setting
     * forbids it.
     */
    private static void notInTheClear(JavaSparkContext jsc) {
        Map<Integer, List<Long>> got;
        try {
            got = digests(RddCases.pairs(jsc, 8).groupByKey(6));
        } catch (Exception e) {
            String message = String.valueOf(e.getMessage());
            Check.that(message,
                message.contains("spark.faro.security=required does not allow Spark's own fetch"));
            return;
        }
        throw new AssertionError("blocks came, in the clear: " + got.size() + " groups");
    }

    private static <T> Iterator<T> dieOnce(Iterator<T> records, int after, File killed) {
        return new Iterator<T>() {
            private int seen;

            @Override
            public boolean hasNext() {
                return records.hasNext();
            }

            @Override
            public T next() {
                try {
                    // createNewFile is atomic: just one task dies.
                    if (++seen == after && killed.createNewFile()) {
                        Executors.signal(Executors.pid(), "KILL");
                    }
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
                return records.next();
            }
        };
    }

    private static Map<Integer, List<Long>> expected() {
        return RddCases.expected();
    }

    private static Map<Integer, List<Long>> digests(JavaPairRDD<Integer, Iterable<Long>> grouped) {
        return new HashMap<>(grouped.mapValues(RddCases::digest).collectAsMap());
    }
}
