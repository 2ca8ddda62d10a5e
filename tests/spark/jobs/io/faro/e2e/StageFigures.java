package io.faro.e2e;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.apache.spark.executor.ShuffleReadMetrics;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerStageCompleted;

/** Spark's own figures of a job's stages, in the order in which they ended. */
final class StageFigures {
    final List<TaskMetrics> stages = new ArrayList<>();
    final List<ShuffleReadMetrics> reads = new ArrayList<>();
    /** Bytes of shuffles. */
    final List<Long> written = new ArrayList<>();

    private StageFigures() {}

    /** Of a job of two stages. */
    static StageFigures of(SparkContext sc, Runnable job) throws Exception {
        StageFigures figures = new StageFigures();
        SparkListener listener = new SparkListener() {
            @Override
            public void onStageCompleted(SparkListenerStageCompleted stage) {
                synchronized (figures) {
                    figures.stages.add(stage.stageInfo().taskMetrics());
                    figures.reads.add(stage.stageInfo().taskMetrics().shuffleReadMetrics());
                    figures.written.add(stage.stageInfo().taskMetrics().shuffleWriteMetrics().bytesWritten());
                }
            }
        };
        // The end of an earlier job's last stage may still be on its way to listeners.
        sc.listenerBus().waitUntilEmpty(TimeUnit.DAYS.toMillis(1));
        sc.addSparkListener(listener);
        try {
            job.run();
            Check.await("both stages should be over", () -> {
                synchronized (figures) {
                    return figures.reads.size() >= 2;
                }
            });
        } finally {
            sc.removeSparkListener(listener);
        }
        return figures;
    }
}
