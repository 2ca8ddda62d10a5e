package io.faro.spark;

import io.faro.Endpoint;
import org.apache.spark.SparkEnv;
import org.apache.spark.shuffle.ShuffleManager;

/** Gives a task its executor's endpoint, for Faro's other packages. */
public final class FaroEndpoints {
  private FaroEndpoints() {}

  /**
   * The endpoint of this task's executor; opens it if necessary. Throws {@link IllegalStateException}, with the setting
   * to check, if there is none.
   */
  public static Endpoint ofThisExecutor() {
    SparkEnv env = SparkEnv.get();
    if (env == null) {
      throw new IllegalStateException("this is not a Spark process; only executors have endpoints");
    }
    FaroProcess process = FaroProcess.current();
    if (process == null) {
      ShuffleManager manager = env.shuffleManager();
      throw new IllegalStateException("spark.shuffle.manager is " + manager.getClass().getName() + " (loaded by "
          + manager.getClass().getClassLoader() + "); an endpoint needs " + FaroShuffleManager.class.getName()
          + " (loaded by " + FaroShuffleManager.class.getClassLoader() + "), or spark.plugins="
          + FaroPlugin.class.getName());
    }
    return process.endpoint();
  }
}
