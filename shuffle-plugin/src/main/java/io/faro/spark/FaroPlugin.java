package io.faro.spark;

import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.SparkPlugin;

/**
 * The class for {@code spark.plugins}: Faro's transport behind a shuffle manager that is not Faro's, for example Apache
 * DataFusion Comet's. That manager writes and reads its blocks as before; those of other executors come through Faro,
 * because it fetches them with the block manager's client, which Faro replaces. It has to keep its map outputs in
 * Spark's files, as Spark's own manager does; behind any other Faro is off.
 *
 * <p>A manager that wraps another would not do: Comet and Gluten compare the class name in {@code
 * spark.shuffle.manager}, and Spark SQL copies each row for a manager that is no {@code SortShuffleManager}.
 *
 * <p>With {@link FaroShuffleManager} this class does nothing.
 */
public final class FaroPlugin implements SparkPlugin {
  @Override
  public DriverPlugin driverPlugin() {
    return new DriverPluginImpl();
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return new ExecutorPluginImpl();
  }
}
