package io.faro.spark;

import io.faro.spark.conf.FaroKeys;
import io.faro.spark.conf.UnsupportedSettings;
import io.faro.spark.service.FaroShuffleDataIO;
import org.apache.spark.SparkConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Tells Spark in the driver that node services keep map outputs. */
final class OutlivingOutputs {
  private static final Logger LOG = LoggerFactory.getLogger(OutlivingOutputs.class);
  private static final String READ_HOST_LOCAL = "spark.shuffle.readHostLocalDisk";

  private OutlivingOutputs() {}

  /**
   * Sets what Spark reads after it has made its shuffle manager, in all versions: its shuffle plug-in, and the settings
   * that executors get.
   */
  static void configure(SparkConf conf) {
    String plugin = conf.get(UnsupportedSettings.IO_PLUGIN, UnsupportedSettings.LOCAL_DISK_IO).trim();
    if (plugin.equals(UnsupportedSettings.LOCAL_DISK_IO)) {
      conf.set(UnsupportedSettings.IO_PLUGIN, FaroShuffleDataIO.class.getName());
    } else if (!plugin.equals(FaroShuffleDataIO.class.getName())) {
      LOG.warn("Faro: Spark computes the map outputs of lost executors again although services keep them, because "
          + "{}={} is set", UnsupportedSettings.IO_PLUGIN, plugin);
    }
    if (!conf.contains(READ_HOST_LOCAL)) {
      // Spark would ask an executor that has ended where its files are.
      conf.set(READ_HOST_LOCAL, "false");
      LOG.info("Faro: {} is false, because {} is set", READ_HOST_LOCAL, FaroKeys.SERVICE_DIRECTORY.name);
    }
  }
}
