package io.faro.bench;

import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.spark.CleanerListener;
import org.apache.spark.SparkContext;

/**
 * Makes Spark delete the files of past shuffles before the next measurement, which keeps the tmpfs small and the
 * deletion out of the figures. Spark cleans up shuffles that the garbage collector finds unreachable.
 */
final class ShuffleCleaning implements CleanerListener {
  private final Semaphore cleaned = new Semaphore(0);

  static ShuffleCleaning of(SparkContext context) {
    ShuffleCleaning cleaning = new ShuffleCleaning();
    context.cleaner().get().attachListener(cleaning);
    return cleaning;
  }

  /** Waits until one more shuffle was cleaned up. Returns whether one was. */
  boolean awaitOne() throws InterruptedException {
    for (int attempt = 0; attempt < 10; attempt++) {
      System.gc();
      if (cleaned.tryAcquire(1, TimeUnit.SECONDS)) {
        return true;
      }
    }
    return false;
  }

  @Override
  public void shuffleCleaned(int shuffleId) {
    cleaned.release();
  }

  @Override
  public void rddCleaned(int rddId) {}

  @Override
  public void broadcastCleaned(long broadcastId) {}

  @Override
  public void accumCleaned(long accumulatorId) {}

  @Override
  public void checkpointCleaned(long rddId) {}
}
