package io.faro.spark;

import io.faro.spark.metrics.SortCounters;
import org.apache.spark.SparkConf;

/** Adds Faro's extension to those that each session of Spark SQL gets. */
final class SqlExtensions {
  static final String SETTING = "spark.sql.extensions";

  private SqlExtensions() {}

  /** Called in the driver, before there is a session. The user's own come first, as they would alone. */
  static void configure(SparkConf conf) {
    SortCounters.resetPlans();
    String own = "io.faro.spark.FaroSqlExtension";
    String others = conf.get(SETTING, "").trim();
    for (String name : others.split(",")) {
      if (name.trim().equals(own)) {
        return;
      }
    }
    conf.set(SETTING, others.isEmpty() ? own : others + "," + own);
  }
}
