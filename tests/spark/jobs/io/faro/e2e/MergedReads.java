package io.faro.e2e;

import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.executor.ShuffleReadMetrics;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerTaskEnd;

/** For {@code spark.extraListeners}: prints how many chunks of push-based shuffle were read, by Spark's own figures. */
public final class MergedReads extends SparkListener {
    private final Map<String, Long> sums = new TreeMap<>();

    @Override
    public void onTaskEnd(SparkListenerTaskEnd end) {
        if (end.taskMetrics() == null) {
            return;
        }
        ShuffleReadMetrics read = end.taskMetrics().shuffleReadMetrics();
        synchronized (sums) {
            add("remoteBlocks", read.remoteBlocksFetched());
            add("localBlocks", read.localBlocksFetched());
            add("chunks", read.remoteMergedChunksFetched() + read.localMergedChunksFetched());
            add("merged", read.remoteMergedBlocksFetched() + read.localMergedBlocksFetched());
            add("mergedFallBacks", read.mergedFetchFallbackCount());
            add("corruptChunks", read.corruptMergedBlockChunks());
        }
    }

    private void add(String name, long value) {
        sums.merge(name, value, Long::sum);
    }

    @Override
    public void onApplicationEnd(SparkListenerApplicationEnd end) {
        synchronized (sums) {
            System.out.println("MERGED " + sums);
        }
    }
}
