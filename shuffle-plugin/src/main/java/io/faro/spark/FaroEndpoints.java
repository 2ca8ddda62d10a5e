package io.faro.spark;

import io.faro.Endpoint;
import org.apache.spark.SparkEnv;
import org.apache.spark.shuffle.ShuffleManager;

/** The way from a task to its executor's endpoint, for Faro's other packages. */
public final class FaroEndpoints {
  private FaroEndpoints() {}

  /**
   * The endpoint of the executor that this task runs in, opened if need be. Throws {@link IllegalStateException}, with
   * the setting to look at, where there is none.
   */
  public static Endpoint ofThisExecutor() {
    SparkEnv env = SparkEnv.get();
    if (env == null) {
      throw new IllegalStateException("not in a Spark process: an endpoint is an executor's");
    }
    ShuffleManager manager = env.shuffleManager();
    if (!(manager instanceof FaroShuffleManager)) {
      throw new IllegalStateException("spark.shuffle.manager is " + manager.getClass().getName() + " (loaded by "
          + manager.getClass().getClassLoader() + "); an endpoint needs " + FaroShuffleManager.class.getName()
          + " (loaded by " + FaroShuffleManager.class.getClassLoader() + ")");
    }
    return ((FaroShuffleManager) manager).endpoint();
  }
}
