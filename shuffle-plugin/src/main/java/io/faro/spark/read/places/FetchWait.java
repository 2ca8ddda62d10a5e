package io.faro.spark.read.places;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.spark.TaskContext;

/** Waits on a task's thread. */
public final class FetchWait {
  /** Period in which a waiting task looks whether it was killed. */
  private static final long LOOK_MILLIS = 100;

  private FetchWait() {}

  /** Returns the future's value; throws Spark's exception when the task is killed meanwhile. */
  public static <T> T get(CompletableFuture<T> future, TaskContext context)
      throws ExecutionException, InterruptedException {
    while (true) {
      try {
        return future.get(LOOK_MILLIS, TimeUnit.MILLISECONDS);
      } catch (TimeoutException e) {
        context.killTaskIfInterrupted();
      }
    }
  }
}
