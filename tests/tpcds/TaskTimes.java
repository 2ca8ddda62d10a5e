package io.faro.tpcds;

import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;

/** Sums of Spark's own metrics over the tasks that ended since the last {@link #clear}. */
final class TaskTimes extends SparkListener {
    private long runMillis;
    private long shuffleMillis;

    @Override
    public synchronized void onTaskEnd(SparkListenerTaskEnd end) {
        TaskMetrics metrics = end.taskMetrics();
        if (metrics != null) {
            runMillis += metrics.executorRunTime();
            shuffleMillis += metrics.shuffleReadMetrics().fetchWaitTime()
                + metrics.shuffleWriteMetrics().writeTime() / 1_000_000;
        }
    }

    synchronized void clear() {
        runMillis = 0;
        shuffleMillis = 0;
    }

    /** The tasks' seconds, and those of waiting for fetches and of writing shuffle files. */
    synchronized String summary() {
        return runMillis / 1e3 + " " + shuffleMillis / 1e3;
    }
}
