package io.faro.cluster;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;

/** What Spark itself counts while the steps run. */
final class Watcher extends SparkListener {
    final AtomicLong remoteBytes = new AtomicLong();
    final AtomicInteger lost = new AtomicInteger();
    final AtomicInteger repeated = new AtomicInteger();
    /** Of the step that runs; whoever stops a worker in the middle of it waits for its line. */
    volatile String step = "";
    private volatile String said = "";

    @Override
    public void onTaskEnd(SparkListenerTaskEnd event) {
        TaskMetrics metrics = event.taskMetrics();
        if (metrics == null) {
            return;
        }
        long bytes = metrics.shuffleReadMetrics().remoteBytesRead();
        remoteBytes.addAndGet(bytes);
        String now = step;
        if (bytes > 0 && !said.equals(now)) {
            said = now;
            System.out.printf("step %s: blocks are being read%n", now);
        }
    }

    @Override
    public void onStageSubmitted(SparkListenerStageSubmitted event) {
        if (event.stageInfo().attemptNumber() > 0) {
            repeated.incrementAndGet();
        }
    }

    @Override
    public void onExecutorRemoved(SparkListenerExecutorRemoved event) {
        lost.incrementAndGet();
    }
}
