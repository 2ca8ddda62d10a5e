package io.faro.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.executor.ShuffleReadMetrics;
import org.apache.spark.scheduler.StageInfo;

/** Walls and shuffle metrics of the stages that ended since the last {@link #clear}. */
final class StageTimes extends SparkListener {
  private final List<StageInfo> stages = new ArrayList<>();
  private int jobsEnded;

  @Override
  public synchronized void onStageCompleted(SparkListenerStageCompleted completed) {
    stages.add(completed.stageInfo());
  }

  @Override
  public synchronized void onJobEnd(SparkListenerJobEnd end) {
    jobsEnded++;
    notifyAll();
  }

  synchronized void clear() {
    stages.clear();
    jobsEnded = 0;
  }

  /** Spark tells listeners later than it lets the caller go. */
  private void awaitJob() throws InterruptedException {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
    while (jobsEnded == 0) {
      long left = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
      if (left <= 0) {
        throw new IllegalStateException("no end of the job was announced within 30 s");
      }
      wait(left);
    }
  }

  /** {@code reduceMillis=... remoteBlocks=... remoteBytes=... localBlocks=... fetchWaitMillis=...} of stages that read. */
  synchronized String summary() throws InterruptedException {
    awaitJob();
    long reduceMillis = 0;
    long remoteBlocks = 0;
    long remoteBytes = 0;
    long localBlocks = 0;
    long fetchWait = 0;
    for (StageInfo stage : stages) {
      ShuffleReadMetrics read = stage.taskMetrics().shuffleReadMetrics();
      if (read.totalBlocksFetched() == 0) {
        continue;
      }
      reduceMillis += (Long) stage.completionTime().get() - (Long) stage.submissionTime().get();
      remoteBlocks += read.remoteBlocksFetched();
      remoteBytes += read.remoteBytesRead();
      localBlocks += read.localBlocksFetched();
      fetchWait += read.fetchWaitTime();
    }
    return "reduceMillis=" + reduceMillis + " remoteBlocks=" + remoteBlocks + " remoteBytes=" + remoteBytes
        + " localBlocks=" + localBlocks + " fetchWaitMillis=" + fetchWait;
  }
}
