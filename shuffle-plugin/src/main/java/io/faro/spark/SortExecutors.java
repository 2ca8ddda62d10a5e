package io.faro.spark;

import io.faro.Nullable;
import io.faro.spark.peers.EndpointCards;
import io.faro.spark.peers.ExecutorReadiness;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import org.apache.spark.SparkEnv;
import scala.Option;

/** Whether all executors of the driver's application have Faro's classes and its library, so that they can sort. */
final class SortExecutors {
  /** Of the application with {@link #env}. Both are guarded by the class. */
  @Nullable private static ExecutorReadiness readiness;
  @Nullable private static SparkEnv env;

  private SortExecutors() {}

  private static final class SystemClock implements ExecutorReadiness.Clock {
    @Override
    public long getAsLong() {
      return System.nanoTime();
    }

    @Override
    public void sleep(long nanos) throws InterruptedException {
      TimeUnit.NANOSECONDS.sleep(nanos);
    }
  }

  /** May wait a second for executors that it does not know. */
  static boolean areReady() {
    Option<SparkContext> context = SparkContext$.MODULE$.getActive();
    // Local mode's tasks run here, and a library that cannot be loaded leaves their sorts to Spark.
    return !context.isEmpty() && (context.get().isLocal() || of(context.get().env()).all());
  }

  private static synchronized ExecutorReadiness of(SparkEnv now) {
    if (readiness == null || env != now) {
      EndpointCards cards = new EndpointCards(now);
      env = now;
      readiness = new ExecutorReadiness(
          cards::alive, cards, Threads.pool("faro-readiness", 8), new SystemClock());
    }
    return readiness;
  }
}
