package io.faro.bench;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.executor.ShuffleReadMetrics;
import org.apache.spark.scheduler.StageInfo;

/** Walls and shuffle metrics of the stages that ended since the last {@link #clear}. */
final class StageTimes extends SparkListener {
  private final List<StageInfo> stages = new ArrayList<>();

  @Override
  public synchronized void onStageCompleted(SparkListenerStageCompleted completed) {
    stages.add(completed.stageInfo());
  }

  synchronized void clear() {
    stages.clear();
  }

  /** {@code reduceMillis=... remoteBlocks=... remoteBytes=... localBlocks=... fetchWaitMillis=...} of stages that read. */
  synchronized String summary() {
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
