package io.faro.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.apache.spark.SparkConf;

/**
 * Settings of Spark that this version of Faro cannot meet. Where one is on, Faro opens no port and every block takes
 * Spark's own fetch, which meets it: shuffle data never travels with less protection than the user asked for. With
 * {@code spark.faro.fallback=never} that is a contradiction, and the application does not start.
 */
final class StandAside {
  private static final String[] SECURITY = {
    "spark.authenticate", "spark.network.crypto.enabled", "spark.ssl.rpc.enabled"
  };
  private static final String IO_PLUGIN = "spark.shuffle.sort.io.plugin.class";
  private static final String LOCAL_DISK_IO = "org.apache.spark.shuffle.sort.io.LocalDiskShuffleDataIO";

  private StandAside() {}

  /** The settings, as {@code key=value}; empty: none is in the way. */
  static List<String> reasons(SparkConf conf) {
    List<String> reasons = new ArrayList<>();
    for (String key : SECURITY) {
      String value = conf.get(key, "false").trim();
      // Anything but a clear no counts as yes.
      if (!"false".equals(value.toLowerCase(Locale.ROOT))) {
        reasons.add(key + "=" + value);
      }
    }
    String plugin = conf.get(IO_PLUGIN, LOCAL_DISK_IO).trim();
    if (!plugin.equals(LOCAL_DISK_IO)) {
      reasons.add(IO_PLUGIN + "=" + plugin);
    }
    return reasons;
  }

  static String notice(List<String> reasons) {
    return "Faro stands aside, Spark's own fetch is used for everything: this version of Faro cannot meet "
        + String.join(", ", reasons);
  }

  static IllegalArgumentException contradiction(List<String> reasons) {
    return Key.refused(
        FaroKeys.FALLBACK.name, "never",
        "auto, because this version of Faro cannot meet " + String.join(", ", reasons)
            + " and would have to leave every block to Spark's own fetch", null);
  }
}
