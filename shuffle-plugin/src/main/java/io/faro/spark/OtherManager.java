package io.faro.spark;

import io.faro.Nullable;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import org.apache.spark.shuffle.ShuffleManager;

/** The shuffle manager that Faro stands behind as a plug-in. */
final class OtherManager {
  private static final String KEY = "spark.shuffle.manager";
  /**
   * Gluten's, a subclass of Spark's. Its files are Spark's, or have an index of segments, which {@link MapOutputs}
   * recognises and leaves to it.
   */
  private static final String GLUTENS = "org.apache.spark.shuffle.sort.ColumnarIndexShuffleBlockResolver";

  private OtherManager() {}

  /** Returns whether the manager is Faro's own, so that there is nothing to stand behind. */
  static boolean isFaros(SparkConf conf) {
    return conf.get(KEY, "sort").trim().equals(FaroShuffleManager.class.getName());
  }

  /** Returns the user's setting, as {@code key=value}. */
  static String setting(SparkConf conf) {
    return KEY + "=" + conf.get(KEY, "sort").trim();
  }

  /**
   * Returns where the map outputs of this process are; null if they are not in Spark's files, as far as Faro knows. A
   * subclass may keep or change bytes elsewhere, so only Spark's own class and Gluten's count. In an executor of Spark
   * 4 the manager exists from the first task on.
   */
  @Nullable static IndexShuffleBlockResolver files() {
    Object resolver = resolver();
    return resolver != null && isKnown(resolver.getClass()) ? (IndexShuffleBlockResolver) resolver : null;
  }

  static boolean isKnown(Class<?> resolver) {
    return resolver == IndexShuffleBlockResolver.class
        || resolver.getName().equals(GLUTENS) && IndexShuffleBlockResolver.class.isAssignableFrom(resolver);
  }

  private static Object resolver() {
    SparkEnv env = SparkEnv.get();
    ShuffleManager manager = env == null ? null : env.shuffleManager();
    if (manager == null) {
      return null;
    }
    try {
      // Since Spark 4.3 the method is not the interface's any more.
      return manager.getClass().getMethod("shuffleBlockResolver").invoke(manager);
    } catch (ReflectiveOperationException e) {
      return null;
    }
  }

  /** Returns why Faro cannot stand behind this process's manager; null if it can. */
  @Nullable static String problem(SparkConf conf) {
    Object resolver = resolver();
    if (resolver != null && isKnown(resolver.getClass())) {
      return null;
    }
    return setting(conf) + " keeps its map outputs in another way than Spark's sort shuffle (its block resolver is "
        + (resolver == null ? "missing" : resolver.getClass().getName()) + ")";
  }
}
