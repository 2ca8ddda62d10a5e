package io.faro.e2e;

import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.TaskKilled;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;

/**
 * Cancels jobs until enough of their tasks were ended at some moment of their work. A job that is cancelled before its
 * first task begins, or after its last one, tries nothing: the former is waited for, the latter does not count.
 */
final class CancelledJobs {
    interface Job {
        void run(int number) throws Exception;
    }

    private final JavaSparkContext jsc;
    private final AtomicInteger begun = new AtomicInteger();
    private final AtomicInteger ended = new AtomicInteger();

    private CancelledJobs(JavaSparkContext jsc) {
        this.jsc = jsc;
    }

    /** Ends at least so many tasks of that type ({@code ShuffleMapTask}, {@code ResultTask}); says how many. */
    static int endTasks(String name, JavaSparkContext jsc, String type, int kills, Job job) throws Exception {
        CancelledJobs jobs = new CancelledJobs(jsc);
        SparkListener listener = new SparkListener() {
            @Override
            public void onTaskStart(SparkListenerTaskStart start) {
                jobs.begun.incrementAndGet();
            }

            @Override
            public void onTaskEnd(SparkListenerTaskEnd end) {
                if (end.reason() instanceof TaskKilled && end.taskType().equals(type)) {
                    jobs.ended.incrementAndGet();
                }
            }
        };
        jsc.sc().addSparkListener(listener);
        try {
            for (int i = 0; jobs.ended.get() < kills && i < 3 * kills; i++) {
                jobs.cancelled(name + "-cancelled-" + i, i, job);
            }
        } finally {
            jsc.sc().removeSparkListener(listener);
        }
        System.out.println(name + ": " + jobs.ended + " tasks ended early");
        Check.that("tasks that were ended: " + jobs.ended, jobs.ended.get() >= kills);
        return jobs.ended.get();
    }

    private void cancelled(String group, int number, Job job) throws Exception {
        int before = begun.get();
        Thread thread = new Thread(() -> {
            jsc.setJobGroup(group, "is cancelled", true);
            try {
                job.run(number);
            } catch (Exception e) {
                // That is what is meant.
            }
        });
        thread.start();
        Check.await("a task should begin", () -> begun.get() > before);
        // At any moment of the task.
        Thread.sleep(3 * (number % 50));
        jsc.cancelJobGroup(group);
        Check.await("a cancelled job should end", () -> !thread.isAlive());
    }
}
