package io.faro.bench;

import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.Dependency;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import scala.collection.Iterator;
import scala.concurrent.Await;
import scala.concurrent.duration.Duration;

/**
 * A job of one shuffle whose executors are killed between its map and its reduce stage. The two stages are timed, but
 * not the time between them: new executors replace the killed ones and run the same job once, so that neither their
 * start nor a cold JVM is in the figures.
 */
final class KilledJob {
  private static final int TRIES = 600;
  private static final long PAUSE_MILLIS = 100;

  private final SparkSession spark;
  private final JavaSparkContext context;
  private final Workload workload;
  private final int divisor;
  private final AtomicInteger mapTasks = new AtomicInteger();

  KilledJob(SparkSession spark, JavaSparkContext context, Workload workload, int divisor) {
    this.spark = spark;
    this.context = context;
    this.workload = workload;
    this.divisor = divisor;
  }

  private final class MapTasks extends SparkListener {
    @Override
    public void onTaskEnd(SparkListenerTaskEnd task) {
      if (task.taskType().equals("ShuffleMapTask") && task.taskInfo().successful()) {
        mapTasks.incrementAndGet();
      }
    }
  }

  /** Runs the job. Returns {@code jobMillis=... mapMillis=... mapTasks=... againTasks=... rows=...}. */
  String run(int victims, int executors) throws Exception {
    SparkContext sc = spark.sparkContext();
    MapTasks listener = new MapTasks();
    sc.addSparkListener(listener);
    try {
      long start = System.nanoTime();
      JavaRDD<Row> rows = workload.build(spark, divisor).toJavaRDD();
      Await.ready(sc.submitMapStage(shuffleOf(rows.rdd())), Duration.Inf());
      long mapNanos = System.nanoTime() - start;
      int first = mapTasks(sc);
      if (victims > 0) {
        replace(victims, executors);
        workload.build(spark, divisor).toJavaRDD().count();
      }
      int before = mapTasks(sc);
      start = System.nanoTime();
      long count = rows.count();
      long reduceNanos = System.nanoTime() - start;
      return "jobMillis=" + (mapNanos + reduceNanos) / 1_000_000 + " mapMillis=" + mapNanos / 1_000_000
          + " mapTasks=" + first + " againTasks=" + (mapTasks(sc) - before) + " rows=" + count;
    } finally {
      sc.removeSparkListener(listener);
    }
  }

  private int mapTasks(SparkContext sc) throws Exception {
    sc.listenerBus().waitUntilEmpty();
    return mapTasks.get();
  }

  private static ShuffleDependency<?, ?, ?> shuffleOf(RDD<?> rdd) {
    for (Iterator<Dependency<?>> all = dependencies(rdd); all.hasNext();) {
      Dependency<?> one = all.next();
      if (one instanceof ShuffleDependency) {
        return (ShuffleDependency<?, ?, ?>) one;
      }
      ShuffleDependency<?, ?, ?> further = shuffleOf(one.rdd());
      if (further != null) {
        return further;
      }
    }
    return null;
  }

  @SuppressWarnings("unchecked")
  private static Iterator<Dependency<?>> dependencies(RDD<?> rdd) {
    return (Iterator<Dependency<?>>) (Iterator<?>) rdd.dependencies().iterator();
  }

  /** Kills {@code victims} executors, and waits until others run in their places. */
  private void replace(int victims, int executors) throws Exception {
    List<String> killed = new ArrayList<>(WorkloadApp.executorPids(context, executors).values()).subList(0, victims);
    List<String> command = new ArrayList<>(killed);
    command.add(0, "kill");
    command.add(1, "-KILL");
    if (new ProcessBuilder(command).inheritIO().start().waitFor() != 0) {
      throw new IOException(String.join(" ", command));
    }
    for (int tries = 0; tries < TRIES; tries++) {
      Map<String, String> now = WorkloadApp.executorPids(context, 1);
      boolean replaced = now.values().stream().allMatch(pid -> new File("/proc/" + pid).exists());
      if (now.size() == executors && replaced) {
        return;
      }
      Thread.sleep(PAUSE_MILLIS);
    }
    throw new IllegalStateException(executors + " executors are not there again");
  }
}
