package io.faro.spark.conf;

import io.faro.Nullable;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.SparkConf;
import scala.Tuple2;

/**
 * The user's configuration, checked: a value that is not allowed throws with the key, the value and what is allowed.
 * Driver and executors check it before they open anything, so that the user sees the error on the driver. Facts about
 * an executor's machine (does this address exist there) are not checked here.
 */
public final class FaroConf {
  /** {@code spark.faro.enabled}, as the application was submitted. */
  public final boolean enabled;
  public final String fabric;
  /** Spark's own fetch delivers no block: {@code spark.faro.fallback} is never, or Spark's fetch is forbidden. */
  public final boolean never;
  /** {@code spark.faro.reader} is auto. */
  public final boolean readsRows;
  /** {@code spark.faro.writer} is auto. */
  public final boolean writesRows;
  /** {@code spark.faro.rowBlocks}. */
  public final boolean wantsRowBlocks;
  public final long memoryLimit;
  /** Cores of this executor. */
  public final int cores;
  public final long requestTimeoutMillis;
  public final int port;
  public final int portRetries;
  /** Null if it is the executor's own address. */
  @Nullable public final String bindAddress;
  public final ChannelSecurity security;
  /** True if the endpoint, or a node service, uses a map output as soon as it is written. */
  public final boolean wantsCommits;
  /** Directory of the node service's socket; null if there is none. */
  @Nullable public final String serviceDirectory;
  /** Copies of each map output on node services of other hosts. */
  public final int replicas;
  public final Map<String, String> settings;

  /** Checks all keys of Faro; throws for the first bad value. */
  public FaroConf(SparkConf conf) {
    cores = MemoryDefault.cores(conf, System.getProperty("sun.java.command", ""));
    Long limit = FaroKeys.MEMORY_LIMIT.of(conf);
    memoryLimit = limit == null ? MemoryDefault.bytes(conf, cores) : limit;
    settings = settings(conf, memoryLimit);
    enabled = FaroKeys.ENABLED.of(conf);
    fabric = FaroKeys.FABRIC.of(conf);
    readsRows = FaroKeys.READER.of(conf).equals("auto");
    writesRows = FaroKeys.WRITER.of(conf).equals("auto");
    wantsRowBlocks = FaroKeys.ROW_BLOCKS.of(conf);
    requestTimeoutMillis = FaroKeys.REQUEST_TIMEOUT.of(conf);
    port = FaroKeys.PORT.of(conf);
    portRetries = Math.max(0, SparkSettings.count(conf, "spark.port.maxRetries", 16));
    bindAddress = FaroKeys.BIND_ADDRESS.of(conf);
    security = ChannelSecurity.of(conf);
    never = FaroKeys.FALLBACK.of(conf).equals("never") || security.forbidsSparksFetch;
    serviceDirectory = FaroKeys.SERVICE_DIRECTORY.of(conf);
    replicas = FaroKeys.REPLICAS.of(conf);
    if (replicas > 0 && serviceDirectory == null) {
      throw new IllegalArgumentException(FaroKeys.REPLICAS.name + "=" + replicas + " needs "
          + FaroKeys.SERVICE_DIRECTORY.name + ": node services have the copies");
    }
    wantsCommits = serviceDirectory != null || !FaroKeys.REGIONS.of(conf).equals("unpinned");
  }

  private static Map<String, String> settings(SparkConf conf, long memoryLimit) {
    Map<String, String> settings = new LinkedHashMap<>();
    for (Key<?> key : FaroKeys.ALL) {
      Object value = key == FaroKeys.MEMORY_LIMIT ? (Object) memoryLimit : key.of(conf);
      if (value != null && key.isEndpoints) {
        settings.put(key.setting, value.toString());
      }
    }
    return Collections.unmodifiableMap(settings);
  }

  /** The setting that does not allow Spark's own fetch; for messages where {@link #never} is set. */
  public String why() {
    return security.forbidsSparksFetch
        ? ChannelSecurity.FORBIDDEN : "spark.faro.fallback=never does not allow Spark's own fetch";
  }

  /** Returns the value of {@code spark.faro.fallback}. */
  public String fallback() {
    return never ? "never" : "auto";
  }

  /** Keys with Faro's prefix that Faro does not know, each with the most similar known key. */
  public static Map<String, String> unknownKeys(SparkConf conf) {
    Map<String, String> unknown = new TreeMap<>();
    for (Tuple2<String, String> entry : conf.getAll()) {
      String name = entry._1();
      if (name.startsWith(FaroKeys.PREFIX) && !name.equals(FaroKeys.DRIVER_VERSION)) {
        String nearest = nearest(name);
        if (!nearest.equals(name)) {
          unknown.put(name, nearest);
        }
      }
    }
    return unknown;
  }

  private static String nearest(String name) {
    String best = null;
    int bestDistance = Integer.MAX_VALUE;
    for (Key<?> key : FaroKeys.ALL) {
      int distance = distance(name.toLowerCase(Locale.ROOT), key.name.toLowerCase(Locale.ROOT));
      if (name.equals(key.name)) {
        return key.name;
      }
      if (distance < bestDistance) {
        bestDistance = distance;
        best = key.name;
      }
    }
    return best;
  }

  private static int distance(String a, String b) {
    int[] row = new int[b.length() + 1];
    for (int j = 0; j <= b.length(); j++) {
      row[j] = j;
    }
    for (int i = 1; i <= a.length(); i++) {
      int diagonal = row[0];
      row[0] = i;
      for (int j = 1; j <= b.length(); j++) {
        int change = diagonal + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
        diagonal = row[j];
        row[j] = Math.min(change, Math.min(row[j], row[j - 1]) + 1);
      }
    }
    return row[b.length()];
  }
}
