package io.faro.bench;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.executor.ShuffleReadMetrics;
import org.apache.spark.scheduler.StageInfo;

/** Wall times and shuffle metrics of the stages that ended since the last {@link #clear}. */
final class StageTimes extends SparkListener {
  private final List<StageInfo> stages = new ArrayList<>();

  @Override
  public synchronized void onStageCompleted(SparkListenerStageCompleted completed) {
    stages.add(completed.stageInfo());
  }

  synchronized void clear() {
    stages.clear();
  }

  /**
   * Returns {@code reduceMillis=... remoteBlocks=... remoteBytes=... localBlocks=... localBytes=...
   * fetchWaitMillis=...} for stages that read, and {@code writtenBytes=... spilledBytes=...} for all stages.
   */
  synchronized String summary() {
    long reduceMillis = 0;
    long remoteBlocks = 0;
    long remoteBytes = 0;
    long localBlocks = 0;
    long localBytes = 0;
    long fetchWait = 0;
    long writtenBytes = 0;
    long spilledBytes = 0;
    for (StageInfo stage : stages) {
      writtenBytes += stage.taskMetrics().shuffleWriteMetrics().bytesWritten();
      spilledBytes += stage.taskMetrics().diskBytesSpilled();
      ShuffleReadMetrics read = stage.taskMetrics().shuffleReadMetrics();
      if (read.totalBlocksFetched() == 0) {
        continue;
      }
      reduceMillis += (Long) stage.completionTime().get() - (Long) stage.submissionTime().get();
      remoteBlocks += read.remoteBlocksFetched();
      remoteBytes += read.remoteBytesRead();
      localBlocks += read.localBlocksFetched();
      localBytes += read.localBytesRead();
      fetchWait += read.fetchWaitTime();
    }
    return "reduceMillis=" + reduceMillis + " remoteBlocks=" + remoteBlocks + " remoteBytes=" + remoteBytes
        + " localBlocks=" + localBlocks + " localBytes=" + localBytes + " fetchWaitMillis=" + fetchWait
        + " writtenBytes=" + writtenBytes + " spilledBytes=" + spilledBytes;
  }
}
