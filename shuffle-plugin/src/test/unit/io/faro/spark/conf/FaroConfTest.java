package io.faro.spark.conf;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.spark.FaroShuffleManager;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class FaroConfTest {
  private static SparkConf with(String... keysAndValues) {
    SparkConf conf = new SparkConf(false);
    for (int i = 0; i < keysAndValues.length; i += 2) {
      conf.set(keysAndValues[i], keysAndValues[i + 1]);
    }
    return conf;
  }

  private static Map<String, String> map(String... namesAndValues) {
    Map<String, String> map = new LinkedHashMap<>();
    for (int i = 0; i < namesAndValues.length; i += 2) {
      map.put(namesAndValues[i], namesAndValues[i + 1]);
    }
    return map;
  }

  @Test
  void defaults() {
    FaroConf conf = new FaroConf(with());
    assertEquals("auto", conf.fabric);
    assertFalse(conf.never);
    assertEquals(MemoryDefault.bytes(with(), conf.cores), conf.memoryLimit);
    assertEquals(30_000, conf.requestTimeoutMillis);
    assertEquals(0, conf.port);
    assertEquals(16, conf.portRetries);
    assertNull(conf.bindAddress);
    assertFalse(conf.wantsCommits);
    assertTrue(conf.enabled);
  }

  /** Keys without a default are not passed on: native code then chooses. */
  @Test
  void theEndpointGetsEveryDefault() {
    assertEquals(
        map("fabric", "auto", "memory.limit", "134217728", "memory.idleRelease", "60000", "request.timeout", "30000",
            "port", "0", "regions", "unpinned", "exchange", "auto", "exchange.slice", "20",
            "verbs.trafficClass", "0", "verbs.serviceLevel", "0",
            "verbs.retryCount", "7", "verbs.rnrRetry", "7", "verbs.timeout", "14"),
        new FaroConf(with("spark.executor.cores", "4")).settings);
    assertEquals(
        new FaroConf(with()).settings,
        new FaroConf(with(
            "spark.faro.verbs.device", "(chosen)", "spark.faro.verbs.gidIndex", "(chosen)",
            "spark.faro.bindAddress", "(the executor's address)")).settings);
  }

  @Test
  void everyKeyIsRead() {
    FaroConf conf = new FaroConf(with(
        "spark.faro.fabric", "shm", "spark.faro.fallback", "never", "spark.faro.memory.limit", " 1g ",
        "spark.faro.request.timeout", "1500ms", "spark.faro.port", "7400", "spark.port.maxRetries", "3",
        "spark.faro.bindAddress", "fe80::1%eth0"));
    assertEquals("shm", conf.fabric);
    assertTrue(conf.never);
    assertEquals(1L << 30, conf.memoryLimit);
    assertEquals(1_500, conf.requestTimeoutMillis);
    assertEquals(7_400, conf.port);
    assertEquals(3, conf.portRetries);
    assertEquals("fe80::1%eth0", conf.bindAddress);
  }

  @Test
  void theEndpointGetsEveryKeyButThoseOfThePlugin() {
    SparkConf conf = with(
        "spark.faro.enabled", "false",
        "spark.faro.fabric", "verbs", "spark.faro.fallback", "never", "spark.faro.reader", "spark",
        "spark.faro.writer", "spark", "spark.faro.rowBlocks", "false", "spark.faro.security", "required",
        "spark.faro.sort", "true", "spark.faro.memory.limit", "1g", "spark.faro.memory.idleRelease", "5min",
        "spark.faro.request.timeout", "1500ms", "spark.faro.port", "7400",
        "spark.faro.bindAddress", "10.0.0.7", "spark.faro.regions", "odp",
        "spark.faro.service.directory", "/run/faro", "spark.faro.replicas", "2",
        "spark.faro.exchange", "rotated", "spark.faro.exchange.slice", "5ms",
        "spark.faro.verbs.device", "mlx5_0:1,10.1.0.0/16", "spark.faro.verbs.gidIndex", "3",
        "spark.faro.verbs.trafficClass", "104", "spark.faro.verbs.serviceLevel", "3",
        "spark.faro.verbs.retryCount", "6", "spark.faro.verbs.rnrRetry", "5", "spark.faro.verbs.timeout", "16");
    Map<String, String> expected = map(
        "fabric", "verbs", "memory.limit", "1073741824", "memory.idleRelease", "300000", "request.timeout", "1500",
        "port", "7400", "bindAddress", "10.0.0.7", "regions", "odp", "exchange", "rotated",
        "exchange.slice", "5", "verbs.device", "mlx5_0:1,10.1.0.0/16", "verbs.gidIndex", "3",
        "verbs.trafficClass", "104", "verbs.serviceLevel", "3",
        "verbs.retryCount", "6", "verbs.rnrRetry", "5", "verbs.timeout", "16");
    assertEquals(expected, new FaroConf(conf).settings);
    assertEquals(FaroKeys.ALL.size(), expected.size() + 9, "a key is missing in this test");
  }

  @Test
  void commitsAreWantedWhereMapOutputsAreUsedBeforeARequest() {
    assertTrue(new FaroConf(with("spark.faro.regions", "optimistic")).wantsCommits);
    assertTrue(new FaroConf(with("spark.faro.regions", "pinned")).wantsCommits);
    assertTrue(new FaroConf(with("spark.faro.regions", "odp")).wantsCommits);
    assertFalse(new FaroConf(with()).wantsCommits);
  }

  /** The tests' class path has the file that makes a jar one for research. */
  @Test
  void theModesForComparisonAreOnlyInAJarForResearch() {
    assertEquals("pinned", FaroKeys.REGIONS.parse("pinned"));
    assertEquals("unpinned", FaroKeys.regions(false).apply("unpinned"));
    assertEquals("optimistic", FaroKeys.regions(false).apply("optimistic"));
    assertEquals(null, FaroKeys.regions(false).apply("pinned"));
    assertEquals(null, FaroKeys.regions(false).apply("odp"));
  }

  @Test
  void numbersAlone() {
    FaroConf conf = new FaroConf(with("spark.faro.request.timeout", "45", "spark.faro.memory.limit", "33554432"));
    assertEquals(45_000, conf.requestTimeoutMillis);
    assertEquals(32L << 20, conf.memoryLimit);
  }

  @ParameterizedTest
  @CsvSource(delimiter = '|', value = {
    "spark.faro.enabled         | yes                  | true, false",
    "spark.faro.fabric          | carrier-pigeon       | tcp",
    "spark.faro.fabric          | TCP                  | tcp",
    "spark.faro.fabric          | rdma                 | auto, verbs, tcp, shm",
    "spark.faro.fallback        | sometimes            | never",
    "spark.faro.security        | off                  | auto, required",
    "spark.faro.memory.limit    | plenty               | at least 32m",
    "spark.faro.memory.limit    | -1                   | at least 32m",
    "spark.faro.memory.limit    | 31m                  | at least 32m",
    "spark.faro.memory.limit    | 99999999999999999g   | at least 32m",
    "spark.faro.request.timeout | soon                 | 30s",
    "spark.faro.request.timeout | 0s                   | at least 100ms",
    "spark.faro.request.timeout | -5s                  | at least 100ms",
    "spark.faro.request.timeout | 2h                   | at most 1h",
    "spark.faro.port            | 70000                | 65535",
    "spark.faro.port            | 80                   | 1024",
    "spark.faro.port            | -1                   | 65535",
    "spark.faro.port            | http                 | 65535",
    "spark.faro.verbs.device    | mlx5 0               | mlx5_0:1",
    "spark.faro.verbs.device    | mlx5_0:one           | mlx5_0:1",
    "spark.faro.verbs.device    | mlx5_0,              | 10.1.0.0/16",
    "spark.faro.verbs.device    | mlx5_0/24            | 10.1.0.0/16",
    "spark.faro.verbs.gidIndex  | -1                   | 0 to 255",
    "spark.faro.verbs.gidIndex  | first                | 0 to 255",
    "spark.faro.verbs.trafficClass | 256               | 0 to 255",
    "spark.faro.verbs.serviceLevel | 16                | 0 to 15",
    "spark.faro.verbs.retryCount | 8                   | 0 to 7",
    "spark.faro.verbs.rnrRetry  | -1                   | 0 to 7",
    "spark.faro.verbs.timeout   | 0                    | 1 to 31",
    "spark.faro.exchange        | sometimes            | auto, grouped, rotated, random",
    "spark.faro.exchange.slice  | 0ms                  | at least 1ms",
    "spark.faro.exchange.slice  | 11s                  | at most 10s",
    "spark.faro.bindAddress     | not_a_host!          | IP address",
    "spark.faro.bindAddress     | ''                   | IP address",
  })
  void aWrongValueIsNamedWithItsKeyAndWhatIsAllowed(String key, String value, String allowed) {
    String message =
        assertThrows(IllegalArgumentException.class, () -> new FaroConf(with(key, value))).getMessage();
    assertTrue(message.contains(key) && message.contains("'" + value + "'") && message.contains(allowed), message);
  }

  @Test
  void unknownKeysWithTheNearestKnownOne() {
    Map<String, String> unknown = FaroConf.unknownKeys(with(
        "spark.faro.fabric", "tcp", "spark.faro.fabrics", "tcp", "spark.faro.memoryLimit", "1g",
        "spark.faro.bindaddress", "x", "spark.farout", "x", "spark.executor.cores", "2"));
    assertEquals(3, unknown.size());
    assertEquals("spark.faro.fabric", unknown.get("spark.faro.fabrics"));
    assertEquals("spark.faro.memory.limit", unknown.get("spark.faro.memoryLimit"));
    assertEquals("spark.faro.bindAddress", unknown.get("spark.faro.bindaddress"));
  }

  @Test
  void securitySettingsThatAreNotUnderstoodAreUnsupported() {
    assertEquals(Collections.emptyList(), UnsupportedSettings.of(with(
        "spark.authenticate", "false", "spark.network.crypto.enabled", "TRUE", "spark.ssl.rpc.enabled", " true ")));
    assertEquals(
        Arrays.asList("spark.authenticate=1", "spark.network.crypto.enabled=${spark.authenticate}",
            "spark.ssl.rpc.enabled=yes"),
        UnsupportedSettings.of(with("spark.ssl.rpc.enabled", "yes",
            "spark.network.crypto.enabled", "${spark.authenticate}", "spark.authenticate", "1")));
  }

  @Test
  void otherPlacesForMapOutputsAreUnsupported() {
    String key = "spark.shuffle.sort.io.plugin.class";
    assertEquals(Collections.emptyList(),
        UnsupportedSettings.of(with(key, "org.apache.spark.shuffle.sort.io.LocalDiskShuffleDataIO")));
    // Its files are local too, on a volume that outlives its executor.
    assertEquals(
        Collections.emptyList(),
        UnsupportedSettings.of(with(key, "org.apache.spark.shuffle.KubernetesLocalDiskShuffleDataIO")));
    assertEquals(Collections.singletonList(key + "=com.example.Io"),
        UnsupportedSettings.of(with(key, "com.example.Io")));
  }

  @Test
  void behindAnotherManagerNothingMayDependOnCommits() {
    assertEquals(Collections.emptyList(), UnsupportedSettings.behindAnotherManager(with()));
    assertEquals(Collections.emptyList(),
        UnsupportedSettings.behindAnotherManager(with("spark.faro.reader", "auto")));
    assertEquals(
        Collections.singletonList("spark.faro.regions=optimistic behind another shuffle manager"),
        UnsupportedSettings.behindAnotherManager(with("spark.faro.regions", "optimistic")));
  }

  @Test
  void neverAndUnsupportedSettingsContradictEachOther() {
    SparkConf conf = with("spark.faro.fallback", "never", "spark.authenticate", "yes");
    String message =
        assertThrows(IllegalArgumentException.class, () -> new FaroShuffleManager(conf, true)).getMessage();
    assertTrue(message.contains("spark.faro.fallback is 'never'") && message.contains("spark.authenticate=yes"),
        message);
  }

  @Test
  void theManagerRefusesAWrongValueOnDriverAndExecutor() {
    SparkConf conf = with("spark.faro.port", "70000");
    assertThrows(IllegalArgumentException.class, () -> new FaroShuffleManager(conf, true));
    assertThrows(IllegalArgumentException.class, () -> new FaroShuffleManager(conf, false));
  }

  @Test
  void stopIsIdempotentAndUnregisterComesInAnyOrder() {
    FaroShuffleManager manager = new FaroShuffleManager(with(), false);
    assertTrue(manager.unregisterShuffle(1));
    manager.stop();
    manager.stop();
    assertTrue(manager.unregisterShuffle(1));
  }
}
