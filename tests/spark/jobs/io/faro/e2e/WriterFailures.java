package io.faro.e2e;

import java.io.File;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.ExceptionFailure;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/** Map tasks of Spark SQL that are ended while they write, or cannot write. Nothing of them may stay on disk. */
final class WriterFailures {
    private static final int REDUCES = 8;

    private WriterFailures() {}

    static void register(Map<String, Jobs.Case> cases) {
        cases.put("writerKilled", c -> killed(c, 30));
        cases.put("writerKilledOften", c -> killed(c, 200));
        cases.put("diskFull", c -> diskFull(c));
        cases.put("directoryGone", c -> directoryGone(c));
        cases.put("rowsSpeculated", c -> speculated(c));
    }

    /** The ids, with something done to each partition's iterator; by hash: without a sort before the writer. */
    private static Dataset<Row> shuffled(SparkSession spark, long rows, int maps,
            MapPartitionsFunction<Long, Long> onPartition) {
        return spark.range(0, rows, 1, maps).mapPartitions(onPartition, Encoders.LONG())
            .selectExpr("value id", "repeat(cast(value as string), 20) t").repartition(REDUCES, new Column("id"));
    }

    private static void checkSum(String what, long rows, Dataset<Row> shuffled) {
        Row row = shuffled.selectExpr("count(*)", "sum(id)", "sum(if(t = repeat(cast(id as string), 20), 0, 1))")
            .collectAsList().get(0);
        Check.equal("rows, " + what, rows, row.getLong(0));
        Check.equal("ids, " + what, rows * (rows - 1) / 2, row.getLong(1));
        Check.equal("wrong texts, " + what, 0L, row.getLong(2));
    }

    private interface Action {
        void run() throws Exception;
    }

    /** Calls {@code then} at the {@code after}-th element. */
    private static Iterator<Long> at(Iterator<Long> ids, int after, Action then) {
        return new Iterator<Long>() {
            private int seen;

            @Override
            public boolean hasNext() {
                return ids.hasNext();
            }

            @Override
            public Long next() {
                try {
                    if (++seen == after) {
                        then.run();
                    }
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
                return ids.next();
            }
        };
    }

    /** So many map tasks are ended at some moment of their writing; then three executors are killed. */
    private static void killed(Jobs.Context c, int kills) throws Exception {
        SparkSession spark = c.spark;
        checkSum("before", 400_000, shuffled(spark, 400_000, 4, ids -> ids));
        Executors.Use before = Executors.use(c.jsc);
        AtomicInteger ended = new AtomicInteger();
        WriterCases.with(spark, WriterCases.ADAPTIVE, "false",
            context -> ended.set(CancelledJobs.endTasks("writer", c.jsc, "ShuffleMapTask", kills, i -> {
                // Some of long tasks, some of many short ones, of which more commit.
                Plans.rows(shuffled(spark, 1_200_000, i % 4 == 3 ? 300 : 4, ids -> ids)).count();
            })), c);
        LocalFiles.awaitNoneUnfinished(c.jsc);
        Executors.awaitReturnedLeases(c.jsc);
        Executors.Use after = Executors.use(c.jsc);
        // Threads and descriptors of Spark's own come and go.
        Check.that("descriptors: " + before + ", after " + ended + " ended tasks " + after,
            after.descriptors <= before.descriptors + 20);
        Check.that("threads: " + before + ", after " + ended + " ended tasks " + after,
            after.threads <= before.threads + 20);
        for (int round = 0; round < 3; round++) {
            File done = new File(c.scratch, "killed-writer-" + round);
            int row = 24_000 * round + 6_000;
            MapPartitionsFunction<Long, Long> dying = ids -> at(ids, row, () -> {
                // createNewFile is atomic: just one executor dies.
                if (done.createNewFile()) {
                    Executors.signal(Executors.pid(), "KILL");
                }
            });
            checkSum("executor killed at row " + row, 300_000, shuffled(spark, 300_000, 5, dying));
            Check.that("an executor should have been killed", done.exists());
        }
        LocalFiles.awaitNoneUnfinished(c.jsc);
    }

    /**
     * No room for more than 64 KiB in a file: tasks fail with the system's error. When there is room again, the job
     * ends.
     */
    private static void diskFull(Jobs.Context c) throws Exception {
        Collection<String> pids = Executors.pids(c.jsc, 2).values();
        List<String> failures = new ArrayList<>();
        SparkListener listener = new SparkListener() {
            @Override
            public void onTaskEnd(SparkListenerTaskEnd end) {
                if (end.reason() instanceof ExceptionFailure) {
                    ExceptionFailure failure = (ExceptionFailure) end.reason();
                    synchronized (failures) {
                        failures.add(failure.className() + ": " + failure.description());
                    }
                }
            }
        };
        c.jsc.sc().addSparkListener(listener);
        FutureTask<Void> job = new FutureTask<>(() -> {
            checkSum("after there was room again", 400_000, shuffled(c.spark, 400_000, 4, ids -> ids));
            return null;
        });
        try {
            fileLimit(pids, "65536");
            new Thread(job).start();
            Check.await("tasks should find no room", () -> {
                synchronized (failures) {
                    return failures.size() >= 6 || job.isDone();
                }
            });
            synchronized (failures) {
                Check.that("tasks that failed: " + failures, failures.size() >= 6);
            }
        } finally {
            fileLimit(pids, "unlimited");
        }
        job.get();
        c.jsc.sc().removeSparkListener(listener);
        synchronized (failures) {
            for (String failure : failures) {
                Check.that("a task failed otherwise: " + failure,
                    failure.equals("java.io.IOException: File too large"));
            }
        }
        LocalFiles.awaitNoneUnfinished(c.jsc);
    }

    private static void fileLimit(Collection<String> pids, String bytes) throws Exception {
        for (String pid : pids) {
            // The soft limit: it can be raised again.
            String[] command = {"prlimit", "--pid", pid, "--fsize=" + bytes + ":"};
            int code = new ProcessBuilder(command).inheritIO().start().waitFor();
            Check.equal("prlimit's exit code", 0, code);
        }
    }

    /** One of an executor's two local directories becomes a file: what was there is computed again, elsewhere. */
    private static void directoryGone(Jobs.Context c) throws Exception {
        long rows = 200_000;
        JavaRDD<Long> digests = shuffled(c.spark, rows, 8, ids -> ids).toJavaRDD()
            .map(row -> Check.mix(row.getLong(0)) ^ row.getString(1).hashCode());
        long expected = digests.reduce(Long::sum);
        List<String> paths = LocalFiles.directories(c.jsc).values().iterator().next();
        Check.equal("local directories: " + paths, 2, paths.size());
        File gone = new File(paths.get(1));
        // Of an output's files Spark deletes no more after one whose directory is not there: where the
        // index was in this one, the checksums in the other one stay, as with stock Spark.
        Set<String> lost = new HashSet<>();
        LocalFiles.walk(gone, file -> lost.add(LocalFiles.output(file.getName())));
        delete(gone);
        Check.that("a file instead of " + gone, gone.createNewFile());
        Check.equal("digest of the same shuffle", expected, digests.reduce(Long::sum));
        for (int i = 0; i < 3; i++) {
            checkSum("job " + i + " after", rows, shuffled(c.spark, rows, 8, ids -> ids));
        }
        LocalFiles.awaitNoneUnfinished(c.jsc, lost);
    }

    private static void delete(File file) {
        File[] children = file.listFiles();
        for (File child : children == null ? new File[0] : children) {
            delete(child);
        }
        Check.that("delete " + file, file.delete());
    }

    /** The first attempt of a map task stops in the midst of its rows until there is another one; both end. */
    private static void speculated(Jobs.Context c) throws Exception {
        File second = new File(c.scratch, "second-writer");
        checkSum("of two attempts", 160_000, shuffled(c.spark, 160_000, 8, ids -> {
            if (TaskContext.getPartitionId() != 3) {
                return ids;
            } else if (TaskContext.get().attemptNumber() > 0) {
                second.createNewFile();
                return ids;
            }
            return at(ids, 12_000, () -> Check.awaitFile(second));
        }));
        Check.that("a second attempt should have run", second.exists());
        LocalFiles.awaitNoneUnfinished(c.jsc);
    }
}
