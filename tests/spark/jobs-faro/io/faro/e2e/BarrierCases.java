package io.faro.e2e;

import io.faro.collective.CollectiveException;
import io.faro.collective.GroupedAllReduce;
import io.faro.collective.Mode;
import io.faro.collective.Settings;
import io.faro.spark.collective.BarrierTeam;
import java.io.File;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;

/** Barrier stages whose tasks reduce arrays with each other: right, and right again after a loss. */
final class BarrierCases {
    private static final int TASKS = 2;
    private static final int LENGTH = 200_000;
    /** Longer than the harness waits: a loss that only the time limit ends is a failure. */
    private static final long NEVER_MILLIS = 3_600_000;

    private BarrierCases() {}

    static void register(Map<String, Jobs.Case> cases) {
        cases.put("allReduce", c -> allReduce(c.jsc));
        cases.put("allReduceTaskFails", c -> taskFails(c.jsc, new File(c.scratch, "failed-task")));
        cases.put("allReduceKilled", c -> killed(c.jsc, new File(c.scratch, "killed-barrier")));
        cases.put("allReduceMismatch", c -> mismatch(c.jsc));
    }

    private static JavaRDD<Integer> partitions(JavaSparkContext jsc) {
        List<Integer> ranks = new ArrayList<>();
        for (int rank = 0; rank < TASKS; rank++) {
            ranks.add(rank);
        }
        return jsc.parallelize(ranks, TASKS);
    }

    private static float[] start(int rank) {
        float[] values = new float[LENGTH];
        for (int i = 0; i < LENGTH; i++) {
            values[i] = rank * 2 + i % 1000;
        }
        return values;
    }

    /** The mean of what {@link #start} gives: off by half of the last rank's share. */
    private static String digest(float[] values) {
        float off = TASKS - 1;
        for (int i = 0; i < LENGTH; i++) {
            if (values[i] != i % 1000 + off) {
                return "element " + i + " is " + values[i];
            }
        }
        return "right";
    }

    private interface Disturbance extends java.io.Serializable {
        /** Called by each task before its round of this number. */
        void before(int rank, int round) throws Exception;
    }

    private static List<String> reduce(JavaSparkContext jsc, Mode mode, Disturbance disturbance) {
        return BarrierTeam.mapPartitions(partitions(jsc), ignored -> {
            BarrierTaskContext context = BarrierTaskContext.get();
            GroupedAllReduce team = BarrierTeam.join(
                context, new Settings().mode(mode).timeoutMillis(NEVER_MILLIS));
            float[] values = start(team.rank());
            for (int round = 0; round < 5; round++) {
                disturbance.before(team.rank(), round);
                team.mean(values);
            }
            return Collections.singletonList(digest(values)).iterator();
        // Spark tries a barrier stage again only if a shuffle follows: a job's last one may have
        // committed something.
        }, String.class).repartition(1).collect();
    }

    private static List<String> allRight() {
        return Collections.nCopies(TASKS, "right");
    }

    private static void allReduce(JavaSparkContext jsc) {
        for (Mode mode : Mode.values()) {
            Check.equal(mode.name(), allRight(), new ArrayList<>(reduce(jsc, mode, (rank, round) -> { })));
        }
    }

    /** One task throws in mid-round, once: the stage fails as a whole and Spark tries it again. */
    private static void taskFails(JavaSparkContext jsc, File failed) {
        List<String> results = reduce(jsc, Mode.GRID, (rank, round) -> {
            if (rank == 1 && round == 2 && failed.createNewFile()) {
                throw new IllegalStateException("on purpose");
            }
        });
        Check.equal("after a failed task", allRight(), new ArrayList<>(results));
        Check.that("a task should have failed", failed.exists());
    }

    /** One executor is killed between two rounds; the other one must not wait for its time limit. */
    private static void killed(JavaSparkContext jsc, File killed) {
        List<String> results = reduce(jsc, Mode.FULL, (rank, round) -> {
            if (rank == 1 && round == 3 && killed.createNewFile()) {
                Executors.signal(Executors.pid(), "KILL");
            }
        });
        Check.equal("after a killed executor", allRight(), new ArrayList<>(results));
        Check.that("an executor should have been killed", killed.exists());
    }

    /** A stage whose tasks do not agree fails, and says who has what. */
    private static void mismatch(JavaSparkContext jsc) {
        String why = "";
        try {
            BarrierTeam.mapPartitions(partitions(jsc), ignored -> {
                GroupedAllReduce team = BarrierTeam.join(BarrierTaskContext.get(), new Settings());
                try {
                    team.sum(new double[10 + team.rank()]);
                } catch (CollectiveException e) {
                    throw new IllegalStateException(e.reason() + " " + e.getMessage());
                }
                return Collections.<String>emptyIterator();
            }, String.class).collect();
        } catch (Exception e) {
            why = String.valueOf(e.getMessage());
        }
        Check.that("MISMATCH is not in: " + why, why.contains("MISMATCH"));
        Check.that("ranks and lengths are not in: " + why,
            why.contains("rank 1") && why.contains("11 doubles") && why.contains("10 doubles"));
    }
}
