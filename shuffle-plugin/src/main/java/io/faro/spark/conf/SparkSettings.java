package io.faro.spark.conf;

import io.faro.Nullable;
import org.apache.spark.SparkConf;
import org.apache.spark.internal.config.ConfigEntry;
import org.apache.spark.internal.config.package$;
import org.apache.spark.network.util.ByteUnit;
import org.apache.spark.network.util.JavaUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;

/**
 * Reads Spark's settings through Spark's own entries: with the type, the unit, the default, the older names and the
 * references to other settings that this version of Spark knows. A type may differ between versions: {@code
 * spark.task.cpus} is a fraction from 4.3 on.
 *
 * <p>Nothing here throws for a value that Spark would refuse: Spark reports it where it reads the setting itself, and
 * only in jobs that need it. {@code otherwise} is for such a value, and for a setting without a value.
 */
public final class SparkSettings {
  private static final Logger LOG = LoggerFactory.getLogger(SparkSettings.class);

  static {
    // Spark registers its entries when this object is made.
    LOG.trace("Spark's entries: {}", package$.MODULE$);
  }

  private SparkSettings() {}

  public static boolean flag(SparkConf conf, String key, boolean otherwise) {
    Object value = value(conf, key);
    String text = value == null ? "" : value.toString();
    return text.equalsIgnoreCase("true") || !text.equalsIgnoreCase("false") && otherwise;
  }

  public static String text(SparkConf conf, String key, String otherwise) {
    Object value = value(conf, key);
    return value == null ? otherwise : value.toString();
  }

  /** A whole number: of a fraction the next smaller one, and the nearest one that fits. */
  public static int count(SparkConf conf, String key, int otherwise) {
    return (int) Math.floor(number(conf, key, otherwise));
  }

  public static double number(SparkConf conf, String key, double otherwise) {
    Object value = value(conf, key);
    try {
      double number = value instanceof Number
          ? ((Number) value).doubleValue() : value == null ? otherwise : Double.parseDouble(value.toString());
      return Double.isNaN(number) ? otherwise : number;
    } catch (NumberFormatException e) {
      return otherwise;
    }
  }

  /** A size in bytes, as {@code otherwise} is; {@code unit}: what Spark's entry counts, and so a number alone. */
  public static long bytes(SparkConf conf, String key, ByteUnit unit, long otherwise) {
    Object value = value(conf, key);
    try {
      if (value == null) {
        return otherwise;
      }
      long units = value instanceof Number
          ? ((Number) value).longValue() : JavaUtils.byteStringAs(value.toString(), unit);
      long one = unit.toBytes(1);
      return Math.max(Long.MIN_VALUE / one, Math.min(Long.MAX_VALUE / one, units)) * one;
    } catch (IllegalArgumentException e) {
      return otherwise;
    }
  }

  /** The value as this Spark has it, or as text if this Spark has no such entry; null if none, or refused. */
  @Nullable private static Object value(SparkConf conf, String key) {
    try {
      ConfigEntry<?> entry = ConfigEntry.findEntry(key);
      Object value = entry == null ? conf.getOption(key) : conf.get(entry);
      if (value instanceof Option) {
        value = ((Option<?>) value).isDefined() ? ((Option<?>) value).get() : null;
      }
      return value instanceof String ? ((String) value).trim() : value;
    } catch (RuntimeException e) {
      LOG.debug("Spark would refuse the value of {}", key, e);
      return null;
    }
  }
}
