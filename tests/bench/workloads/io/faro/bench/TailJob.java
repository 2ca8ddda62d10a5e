package io.faro.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import scala.Tuple2;

/**
 * A job for dynamic allocation: many map tasks, and reduce tasks of which one takes much longer than all others, so
 * that most executors have nothing to do at the end. It starts with one executor. Afterwards the reduce stage is run
 * once more without the tail: are the map outputs of executors that were given back still there?
 */
final class TailJob {
  // The first executor alone has tasks for 51 s, so that those that start later get some of them.
  private static final int MAPS = 64;
  private static final int REDUCES = 8;
  private static final int MAP_MILLIS = 800;
  private static final int REDUCE_MILLIS = 500;
  private static final int TAIL_MILLIS = 24_000;
  private static final int ROWS = 10_000;
  private static final long SAMPLE_MILLIS = 50;
  private static final int TRIES = 2_400;

  private final JavaSparkContext context;
  private final int divisor;
  private final AtomicInteger mapTasks = new AtomicInteger();

  TailJob(JavaSparkContext context, int divisor) {
    this.context = context;
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

  /**
   * Runs the job. Returns {@code jobMillis=... executorMillis=... mostExecutors=... leftExecutors=... mapTasks=...
   * againTasks=...}; {@code executorMillis} is the sum of the times for which executors were there meanwhile, looked at
   * each 50 ms, {@code leftExecutors} how many were there at its end.
   */
  String run() throws Exception {
    SparkContext sc = context.sc();
    MapTasks listener = new MapTasks();
    sc.addSparkListener(listener);
    try {
      awaitOneExecutor(sc);
      int tail = TAIL_MILLIS / divisor;
      int reduce = REDUCE_MILLIS / divisor;
      JavaPairRDD<Integer, Iterable<Integer>> grouped = grouped(MAP_MILLIS / divisor);
      Sampler sampler = new Sampler(sc);
      sampler.start();
      long start = System.nanoTime();
      long groups = grouped.mapPartitionsWithIndex((at, rows) -> {
        compute(at == 0 ? tail : reduce);
        return rows;
      }, false).count();
      long nanos = System.nanoTime() - start;
      int left = sc.getExecutorIds().length();
      long executors = sampler.end();
      int first = mapTasks(sc);
      if (groups != ROWS || grouped.count() != groups) {
        throw new IllegalStateException(groups + " groups, not " + ROWS);
      }
      return "jobMillis=" + nanos / 1_000_000 + " executorMillis=" + executors + " mostExecutors=" + sampler.most
          + " leftExecutors=" + left + " mapTasks=" + first + " againTasks=" + (mapTasks(sc) - first);
    } finally {
      sc.removeSparkListener(listener);
    }
  }

  private JavaPairRDD<Integer, Iterable<Integer>> grouped(int millis) {
    List<Integer> seeds = new ArrayList<>();
    for (int i = 0; i < MAPS; i++) {
      seeds.add(i);
    }
    return context.parallelize(seeds, MAPS).flatMapToPair(seed -> {
      compute(millis);
      List<Tuple2<Integer, Integer>> rows = new ArrayList<>();
      for (int i = 0; i < ROWS; i++) {
        rows.add(new Tuple2<>(i, seed * i));
      }
      return rows.iterator();
    }).groupByKey(REDUCES);
  }

  /** Stands for a computation. It uses no processor: all executors share those of one machine, and would start late. */
  private static void compute(long millis) throws InterruptedException {
    Thread.sleep(millis);
  }

  /** Executors of the job before are given back when its shuffle is gone. */
  private static void awaitOneExecutor(SparkContext sc) throws Exception {
    for (int tries = 0; tries < TRIES; tries++) {
      if (sc.getExecutorIds().length() <= 1) {
        return;
      }
      Thread.sleep(SAMPLE_MILLIS);
    }
    throw new IllegalStateException(sc.getExecutorIds().length() + " executors are not given back");
  }

  private int mapTasks(SparkContext sc) throws Exception {
    sc.listenerBus().waitUntilEmpty();
    return mapTasks.get();
  }

  /** Adds up for how long executors are there. */
  private static final class Sampler extends Thread {
    private final SparkContext sc;
    private volatile boolean ends;
    private double millis;
    private int most;

    Sampler(SparkContext sc) {
      super("bench-executors");
      this.sc = sc;
    }

    @Override
    public void run() {
      long last = System.nanoTime();
      try {
        while (!ends) {
          Thread.sleep(SAMPLE_MILLIS);
          int executors = sc.getExecutorIds().length();
          long now = System.nanoTime();
          millis += executors * (now - last) / 1e6;
          last = now;
          most = Math.max(most, executors);
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }

    long end() throws InterruptedException {
      ends = true;
      join();
      return Math.round(millis);
    }
  }
}
