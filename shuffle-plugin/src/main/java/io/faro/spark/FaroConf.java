package io.faro.spark;

import io.faro.ExchangePolicy;
import io.faro.FabricChoice;
import io.faro.RegionMode;
import io.faro.Staging;
import io.faro.VerbsOptions;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.SparkConf;
import scala.Tuple2;

/**
 * What the user set, checked. Reading it is checking it: a value that is not allowed stops the start of the
 * application with the key, the value and what is allowed, before anything is opened, and on the driver, where the
 * user looks. The price is that an executor-side fact (does this address exist there) cannot be checked here.
 */
final class FaroConf {
  final FabricChoice fabric;
  final boolean never;
  final long memoryLimit;
  /** 0: never. */
  final long idleReleaseMillis;
  final long requestTimeoutMillis;
  final int port;
  final int portRetries;
  /** {@code null}: the executor's own address. */
  final String bindAddress;
  final RegionMode regions;
  final Staging staging;
  final VerbsOptions verbs;
  final ExchangePolicy exchange;
  final long exchangeSliceMillis;

  FaroConf(SparkConf conf) {
    fabric = FaroKeys.FABRIC.of(conf);
    never = FaroKeys.FALLBACK.of(conf) == FaroKeys.Fallback.NEVER;
    memoryLimit = FaroKeys.MEMORY_LIMIT.of(conf);
    idleReleaseMillis = FaroKeys.IDLE_RELEASE_MS.of(conf);
    requestTimeoutMillis = FaroKeys.REQUEST_TIMEOUT_MS.of(conf);
    port = FaroKeys.PORT.of(conf);
    portRetries = Math.max(0, conf.getInt("spark.port.maxRetries", 16));
    String address = FaroKeys.BIND_ADDRESS.of(conf);
    bindAddress = address.equals(FaroKeys.BIND_ADDRESS_DEFAULT) ? null : address;
    regions = FaroKeys.REGIONS.of(conf);
    staging = FaroKeys.STAGING.of(conf);
    verbs = verbs(conf);
    exchange = FaroKeys.EXCHANGE.of(conf);
    exchangeSliceMillis = FaroKeys.EXCHANGE_SLICE_MS.of(conf);
  }

  private static VerbsOptions verbs(SparkConf conf) {
    VerbsOptions verbs = new VerbsOptions()
        .gidIndex(FaroKeys.VERBS_GID_INDEX.of(conf))
        .trafficClass(FaroKeys.VERBS_TRAFFIC_CLASS.of(conf))
        .timeout(FaroKeys.VERBS_TIMEOUT.of(conf))
        .retryCount(FaroKeys.VERBS_RETRY_COUNT.of(conf))
        .rnrRetry(FaroKeys.VERBS_RNR_RETRY.of(conf));
    String device = FaroKeys.VERBS_DEVICE.of(conf);
    return device.equals(FaroKeys.VERBS_CHOSEN) ? verbs : verbs.device(device);
  }

  /** Whether the endpoint has something to do with a map output as soon as it is written. */
  boolean wantsCommits() {
    return staging == Staging.ON_COMMIT || regions != RegionMode.UNPINNED;
  }

  String fallback() {
    return never ? "never" : "auto";
  }

  /** Keys that start as Faro's do and are none, each with the known key that is nearest to it. */
  static Map<String, String> unknownKeys(SparkConf conf) {
    Map<String, String> unknown = new TreeMap<>();
    for (Tuple2<String, String> entry : conf.getAll()) {
      String name = entry._1();
      if (name.startsWith(FaroKeys.PREFIX)) {
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
      int distance = distance(name.toLowerCase(java.util.Locale.ROOT), key.name.toLowerCase(java.util.Locale.ROOT));
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

  /** Levenshtein's. */
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
