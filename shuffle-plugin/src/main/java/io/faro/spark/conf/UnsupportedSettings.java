package io.faro.spark.conf;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkConf;

/**
 * Settings of Spark that this version of Faro does not support, and security settings of Spark whose value it does not
 * understand. With one of them Faro opens no port, and Spark's own fetch delivers all blocks: shuffle data never has
 * less protection than the user configured. With {@code spark.faro.fallback=never} the application does not start.
 */
public final class UnsupportedSettings {
  public static final String IO_PLUGIN = "spark.shuffle.sort.io.plugin.class";
  public static final String LOCAL_DISK_IO = "org.apache.spark.shuffle.sort.io.LocalDiskShuffleDataIO";
  /** The same, except that an executor finds the files of its predecessor on a volume that it got again. */
  private static final String KUBERNETES_DISK_IO = "org.apache.spark.shuffle.KubernetesLocalDiskShuffleDataIO";

  /** The same, except that the driver learns of node services: {@code FaroShuffleDataIO}. */
  static final String FARO_DISK_IO = "io.faro.spark.service.FaroShuffleDataIO";

  private static final String BEHIND = " behind another shuffle manager";

  private UnsupportedSettings() {}

  /** The unsupported settings, as {@code key=value}. */
  public static List<String> of(SparkConf conf) {
    List<String> found = new ArrayList<>(ChannelSecurity.unreadable(conf));
    String plugin = conf.get(IO_PLUGIN, LOCAL_DISK_IO).trim();
    if (!plugin.equals(LOCAL_DISK_IO) && !plugin.equals(KUBERNETES_DISK_IO) && !plugin.equals(FARO_DISK_IO)) {
      found.add(IO_PLUGIN + "=" + plugin);
    }
    return found;
  }

  /**
   * The same behind another shuffle manager, and the settings that need to know when a map output is written: another
   * manager does not say it.
   */
  public static List<String> behindAnotherManager(SparkConf conf) {
    List<String> found = of(conf);
    String regions = FaroKeys.REGIONS.of(conf);
    if (!regions.equals("unpinned")) {
      found.add(FaroKeys.REGIONS.name + "=" + regions + BEHIND);
    }
    String service = FaroKeys.SERVICE_DIRECTORY.of(conf);
    if (service != null) {
      found.add(FaroKeys.SERVICE_DIRECTORY.name + "=" + service + BEHIND);
    }
    return found;
  }

  /** The warning that Faro is off because of these settings. */
  public static String warning(List<String> settings) {
    return "Faro is off, Spark's own fetch delivers all blocks: this version of Faro does not support "
        + String.join(", ", settings);
  }

  /** The error for these settings with {@code security=required}. */
  public static IllegalArgumentException forbidden(List<String> settings) {
    return Key.refused(
        FaroKeys.SECURITY.name, "required",
        "auto, because this version of Faro does not support " + String.join(", ", settings)
            + " and has to leave all blocks to Spark's own fetch; " + ChannelSecurity.FORBIDDEN, null);
  }

  /** The error for these settings with {@code fallback=never}. */
  public static IllegalArgumentException contradiction(List<String> settings) {
    return Key.refused(
        FaroKeys.FALLBACK.name, "never",
        "auto, because this version of Faro does not support " + String.join(", ", settings)
            + " and has to leave all blocks to Spark's own fetch", null);
  }
}
