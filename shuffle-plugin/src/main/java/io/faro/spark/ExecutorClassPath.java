package io.faro.spark;

import io.faro.Nullable;
import java.io.File;
import java.net.URISyntaxException;
import java.security.CodeSource;
import org.apache.spark.SparkConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Whether the executors of Spark 3 find the shuffle manager. They make it before they fetch what {@code --jars} names,
 * so the jar has to be on the class path of their JVM; YARN puts it there. This only warns: an image may have the jar.
 */
final class ExecutorClassPath {
  private static final Logger LOG = LoggerFactory.getLogger(ExecutorClassPath.class);
  static final String SETTING = "spark.executor.extraClassPath";

  private ExecutorClassPath() {}

  /** Called in the driver. */
  static void check(SparkConf conf) {
    File jar = placeOf(FaroShuffleManager.class);
    File spark = placeOf(SparkConf.class);
    boolean isSparks = jar != null && spark != null && jar.getParentFile().equals(spark.getParentFile());
    if (!isSparks && isMissing(conf, org.apache.spark.package$.MODULE$.SPARK_VERSION(), jar)) {
      LOG.warn("Faro: executors of Spark 3 end with ClassNotFoundException: {}, because they make their shuffle "
          + "manager before they fetch what --jars names. Unless their hosts have Faro's jar in Spark's own jars, this "
          + "is missing: --conf {}={}", FaroShuffleManager.class.getName(), SETTING,
          jar == null ? "/path/to/faro-spark.jar" : jar);
    }
  }

  /** {@code jar}: the driver's; null if it is not known. */
  static boolean isMissing(SparkConf conf, String version, @Nullable File jar) {
    String master = conf.get("spark.master", "");
    if (!version.startsWith("3.") || master.startsWith("yarn") || master.equals("local")
        || master.startsWith("local[")) {
      return false;
    }
    for (String entry : conf.get(SETTING, "").split(File.pathSeparator)) {
      String name = new File(entry.trim()).getName();
      // A folder, or all jars of one, may have it.
      boolean mayHaveIt = !name.isEmpty() && !name.endsWith(".jar");
      if (mayHaveIt || name.contains("faro") || jar != null && name.equals(jar.getName())) {
        return false;
      }
    }
    return true;
  }

  private static File placeOf(Class<?> type) {
    CodeSource source = type.getProtectionDomain().getCodeSource();
    try {
      return source == null || source.getLocation() == null ? null : new File(source.getLocation().toURI());
    } catch (URISyntaxException | IllegalArgumentException e) {
      LOG.debug("Faro: the place of {} is not known", type, e);
      return null;
    }
  }
}
