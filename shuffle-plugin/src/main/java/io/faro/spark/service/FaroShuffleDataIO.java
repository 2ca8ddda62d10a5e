package io.faro.spark.service;

import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.shuffle.api.ShuffleDriverComponents;
import org.apache.spark.shuffle.sort.io.LocalDiskShuffleDataIO;
import org.apache.spark.shuffle.sort.io.LocalDiskShuffleDriverComponents;

/**
 * Spark's own local disk as {@code spark.shuffle.sort.io.plugin.class}, which also says that map outputs outlive their
 * executors, where that is true. Faro's shuffle manager puts it there when {@code spark.faro.service.directory} is set.
 */
public final class FaroShuffleDataIO extends LocalDiskShuffleDataIO {
  public FaroShuffleDataIO(SparkConf conf) {
    super(conf);
  }

  @Override
  public ShuffleDriverComponents driver() {
    return new Driver();
  }

  private static final class Driver extends LocalDiskShuffleDriverComponents {
    @Override
    public Map<String, String> initializeApplication() {
      Map<String, String> settings = super.initializeApplication();
      NodeServicesHolder.start();
      return settings;
    }

    /** Asked whenever an executor is lost. Spark 3.4 does not ask, and forgets what a lost executor had. */
    @Override
    public boolean supportsReliableStorage() {
      return NodeServicesHolder.reliable();
    }

    @Override
    public void removeShuffle(int shuffleId, boolean blocking) {
      // First: executors say then what they still have.
      NodeServicesHolder.removed(shuffleId);
      super.removeShuffle(shuffleId, blocking);
    }

    @Override
    public void cleanupApplication() {
      NodeServicesHolder.stop();
      super.cleanupApplication();
    }
  }
}
