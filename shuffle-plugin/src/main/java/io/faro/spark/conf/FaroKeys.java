package io.faro.spark.conf;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.apache.spark.network.util.JavaUtils;

/**
 * All keys of Faro, in the order of docs/user/configuration.md, which is generated from this table. Error messages use
 * the
 * same texts. The value of a key, as text, is what the native endpoint gets under {@link Key#setting}: durations in
 * milliseconds, sizes in bytes (see native/jni/src/settings.rs).
 */
public final class FaroKeys {
  static final String PREFIX = "spark.faro.";
  /** The driver tells executors its version of Faro by this; no setting of the user's. */
  public static final String DRIVER_VERSION = PREFIX + "driver.version";
  /** The value of {@code spark.shuffle.manager} that turns Faro on: the class's name, which is in a package above. */
  public static final String MANAGER = "io.faro.spark.FaroShuffleManager";

  private static final List<Key<?>> DECLARED = new ArrayList<>();
  /** In the order of their declaration. */
  static final List<Key<?>> ALL = Collections.unmodifiableList(DECLARED);

  private static final long MIN_MEMORY = 32L << 20;
  /** True in a jar with the modes for comparison: {@code tests/setup/build-jar --research} adds the file. */
  private static final boolean IS_FOR_RESEARCH = FaroKeys.class.getResource("/META-INF/faro-research") != null;

  public static final Key<Boolean> ENABLED = pluginKey(
      "enabled", "boolean", "true", "true, false",
      "Whether Faro takes part. The only key that can be changed while an application runs, for a session or for RDD "
          + "jobs: [The switch](#the-switch).",
      FaroKeys::bool);

  static final Key<String> FABRIC = key(
      "fabric", "name", "auto", "auto, verbs, tcp, shm",
      "Transport between executors. `auto` opens every fabric that works on the host and uses the best one for each "
          + "pair of executors: shared memory on one host, RDMA (`verbs`) where both have a device, otherwise TCP. The "
          + "other values open that fabric only; `shm` alone reaches only executors of the same host.",
      oneOf("auto", "verbs", "tcp", "shm"));

  static final Key<String> FALLBACK = pluginKey(
      "fallback", "name", "auto", "auto, never",
      "What happens when Faro does not deliver a remote shuffle block. `auto`: Spark's own fetch delivers it. `never`: "
          + "the block is a fetch failure, and an application with [unsupported settings](#unsupported-settings) "
          + "does not start; for tests and benchmarks.",
      oneOf("auto", "never"));

  public static final Key<String> READER = pluginKey(
      "reader", "name", "auto", "auto, spark",
      "Which reader makes rows and records of the blocks that a task reads. `auto`: Faro's, for shuffles of Spark SQL "
          + "and for RDDs whose serializer allows it ([The readers](#the-readers)), and Spark's for all others. "
          + "`spark`: always Spark's. Blocks travel the same way with both.",
      oneOf("auto", "spark"));

  public static final Key<String> WRITER = pluginKey(
      "writer", "name", "auto", "auto, spark",
      "Which writer makes the files of a map task. `auto`: Faro's, for shuffles of Spark SQL "
          + "([The writer](#the-writer)), and Spark's for all others. `spark`: always Spark's.",
      oneOf("auto", "spark"));

  public static final Key<Boolean> ROW_BLOCKS = pluginKey(
      "rowBlocks", "boolean", "true", "true, false",
      "Whether Faro's writer packs rows column by column, into [row blocks](#row-blocks), where that is smaller than "
          + "what lz4 or zstd make of them. Map outputs then have a format that only Faro knows. With `false` the "
          + "files have Spark's format.",
      FaroKeys::bool);

  public static final Key<Boolean> SORT = pluginKey(
      "sort", "boolean", "true", "true, false",
      "Whether Faro sorts rows behind a shuffle, in place of Spark SQL's sort: for joins, windows, aggregates and "
          + "`ORDER BY` ([The sort](#the-sort)). A session can change it (`spark.conf.set`).",
      FaroKeys::bool);

  static final Key<Long> MEMORY_LIMIT = key(
      "memory.limit", "byte size", "(a third of the overhead, 64m to 2g)",
      "a byte size of at least 32m, such as 256m or 1g",
      "Hard limit, per executor, of the native memory for blocks in transfer. Faro takes it in steps as needed, "
          + "outside the JVM's heap and its direct memory; it counts against `spark.executor.memoryOverhead`. The "
          + "default is at most a third of that overhead, and not more than the executor's cores can use "
          + "([memory.md](memory.md)). A number alone is bytes.",
      FaroKeys::memory);

  static final Key<Long> MEMORY_IDLE_RELEASE = key(
      "memory.idleRelease", "duration", "60s", "0 (never) or a duration of 100ms to 24h, such as 60s or 5min",
      "Time without use after which a 16 MiB slab of this memory is de-registered with the RDMA device and given back "
          + "to the system; one slab stays. Faro takes it again when needed. Huge pages are de-registered but kept. A "
          + "number alone is seconds.",
      text -> text.equals("0") ? Long.valueOf(0) : millis(text, 100, TimeUnit.HOURS.toMillis(24)));

  static final Key<Long> REQUEST_TIMEOUT = key(
      "request.timeout", "duration", "30s", "a duration of at least 100ms and at most 1h, such as 30s or 2min",
      "Time that a request may go without progress before Faro ends it. Within this time it is tried once more on the "
          + "same fabric. A number alone is seconds.",
      text -> millis(text, 100, TimeUnit.HOURS.toMillis(1)));

  public static final Key<Integer> PORT = key(
      "port", "port", "0", "0 (any free port) or 1024 to 65535",
      "TCP port that an executor listens on. If it is taken, Faro tries the following ports, up to "
          + "`spark.port.maxRetries` of them, as Spark does: executors of one host need one each. RDMA connects its "
          + "queue pairs over the first free port after it (32 are tried).",
      FaroKeys::port);

  public static final Key<String> BIND_ADDRESS = key(
      "bindAddress", "address", "(the executor's address)",
      "an IP address or a host name of the executor's machine, or 0.0.0.0",
      "Address that an executor listens on. The default is the block manager's address, or 0.0.0.0 if that is not an "
          + "address of this machine (address translation). Peers always get the block manager's address.",
      FaroKeys::address);

  public static final Key<String> SERVICE_DIRECTORY = pluginKey(
      "service.directory", "directory", "(none)", "an absolute path without a line break",
      "Directory in which the node service of each host (`faro serve`) has its socket. With it, executors hand their "
          + "map outputs over to the service, which serves them also when the executor has ended "
          + "([service.md](service.md)). An executor that finds no service there serves by itself.",
      text -> text.startsWith("/") && text.indexOf('\n') < 0 ? text : null);

  static final Key<Integer> REPLICAS = pluginKey(
      "replicas", "number", "0", "0 to 3; more than 0 needs spark.faro.service.directory",
      "Copies of each map output on the node services of other hosts. They are made after the map task has ended. When "
          + "a host is lost with its service, only outputs that were not copied yet are computed again "
          + "([Replicas](service.md#replicas)).",
      text -> within(text, 0, 3));

  static final Key<String> SECURITY = pluginKey(
      "security", "name", "auto", "auto, required",
      "Protection of the connections between executors. `auto`: encrypted if Spark authenticates or encrypts its "
          + "network, otherwise in the clear. `required`: always encrypted; where Spark does not encrypt its block "
          + "transfers, a block that Faro does not deliver is a fetch failure. Without Spark's settings this protects "
          + "only against listening ([security.md](security.md#what-sparks-settings-do)).",
      oneOf("auto", "required"));

  static final Key<String> REGIONS = key(
      "regions", "name", "unpinned",
      "unpinned, optimistic; odp and pinned only in a jar for research (tests/setup/build-jar OUTPUT --research)",
      "How map outputs reach other executors. `unpinned`: their executor sends them through its arena, so that "
          + "`spark.faro.memory.limit` bounds the registered memory; what is requested often stays there. "
          + "`optimistic`: also what was just written is kept there, in up to half of it, and peers read it without "
          + "work of this executor and check that it was not replaced meanwhile. `pinned`, for comparison: each map "
          + "output is mapped and registered as a whole, beyond that limit, and read by peers. `odp`: as `pinned`, "
          + "with on-demand paging where the device has it.",
      regions(IS_FOR_RESEARCH));

  static final Key<String> EXCHANGE = key(
      "exchange", "name", "auto", "auto, grouped, rotated, random",
      "In which order an executor fetches from the others and serves them, and how many at a time. `auto`: `random` "
          + "up to 17 executors, `rotated` beyond, at most 16 at a time. `grouped`: by a schedule of small groups, "
          + "about the square root of the number of executors at a time. `rotated`: around a ring, as many at a time. "
          + "`random`: all at once, in the order of Spark's requests. "
          + "[scaling.md](../design/scaling.md#when-to-use-which-policy) says when to use which.",
      oneOf("auto", "grouped", "rotated", "random"));

  static final Key<Long> EXCHANGE_SLICE = key(
      "exchange.slice", "duration", "20ms", "a duration of at least 1ms and at most 10s, such as 20ms or 1s",
      "How long one round of the schedule is preferred while others wait; also the shortest silence after which an "
          + "executor's turn goes to another. A number alone is seconds.",
      text -> millis(text, 1, 10_000));

  private static final String VERBS_DEVICE_PATTERN = " *([A-Za-z0-9_.-]+(:[0-9]+)?|[0-9A-Fa-f.:]+/[0-9]{1,3}) *";

  static final Key<String> VERBS_DEVICE = key(
      "verbs.device", "list", "(chosen)",
      "a list of devices such as mlx5_0, ports such as mlx5_0:1 and subnets such as 10.1.0.0/16, best first",
      "The only RDMA devices that are tried; the first that works is used. By default all are tried: first the one "
          + "whose port or network interface has the executor's address, then InfiniBand, then those with a routable "
          + "address. `rdma link` lists the devices.",
      text -> text.matches("DEVICE(,DEVICE)*".replace("DEVICE", VERBS_DEVICE_PATTERN)) ? text : null);

  static final Key<Integer> VERBS_GID_INDEX = key(
      "verbs.gidIndex", "number", "(chosen)", "0 to 255",
      "Index of the address in the port's GID table. The default is that of a RoCE v2 address, chosen as for the "
          + "device.",
      text -> within(text, 0, 255));

  static final Key<Integer> VERBS_TRAFFIC_CLASS = key(
      "verbs.trafficClass", "number", "0", "0 to 255",
      "Traffic class of RDMA packets; switches use its upper six bits (DSCP). For example, 104 is DSCP 26, which many "
          + "lossless networks use.",
      text -> within(text, 0, 255));

  static final Key<Integer> VERBS_SERVICE_LEVEL = key(
      "verbs.serviceLevel", "number", "0", "0 to 15",
      "InfiniBand's service level (SL) of packets, where the subnet manager has given Spark's traffic or the routing "
          + "one other than 0. Some devices make the priority of a VLAN of it.",
      text -> within(text, 0, 15));

  static final Key<Integer> VERBS_RETRY_COUNT = key(
      "verbs.retryCount", "number", "7", "0 to 7",
      "How often the device sends a packet again before the connection fails; the pair of executors then uses TCP and "
          + "tries RDMA again later.",
      text -> within(text, 0, 7));

  static final Key<Integer> VERBS_RNR_RETRY = key(
      "verbs.rnrRetry", "number", "7", "0 to 7; 7: without limit",
      "How often the device sends a packet again to a peer that is not ready to receive. Faro's flow control normally "
          + "prevents this.",
      text -> within(text, 0, 7));

  static final Key<Integer> VERBS_TIMEOUT = key(
      "verbs.timeout", "number", "14", "1 to 31",
      "Time before the device sends a packet again: 4.096 µs x 2^n; 14 is 67 ms.",
      text -> within(text, 1, 31));

  private FaroKeys() {}

  /** A key that is also a setting of the native endpoint. */
  private static <T> Key<T> key(
      String setting, String type, String defaultText, String allowed, String doc, Function<String, T> parser) {
    return declared(new Key<>(setting, true, type, defaultText, allowed, doc, parser));
  }

  /** A key that only the plug-in uses. */
  private static <T> Key<T> pluginKey(
      String setting, String type, String defaultText, String allowed, String doc, Function<String, T> parser) {
    return declared(new Key<>(setting, false, type, defaultText, allowed, doc, parser));
  }

  private static <T> Key<T> declared(Key<T> key) {
    DECLARED.add(key);
    return key;
  }

  private static Function<String, String> oneOf(String... names) {
    return text -> Arrays.asList(names).contains(text) ? text : null;
  }

  static Function<String, String> regions(boolean isForResearch) {
    return isForResearch ? oneOf("unpinned", "optimistic", "odp", "pinned") : oneOf("unpinned", "optimistic");
  }

  private static Boolean bool(String text) {
    return text.equalsIgnoreCase("true") ? Boolean.TRUE : text.equalsIgnoreCase("false") ? Boolean.FALSE : null;
  }

  private static Long memory(String text) {
    long bytes = JavaUtils.byteStringAsBytes(text);
    return bytes >= MIN_MEMORY ? bytes : null;
  }

  private static Long millis(String text, long min, long max) {
    // timeStringAs reads a number alone in the unit of its result, here milliseconds; Faro's unit is seconds.
    boolean bare = !text.isEmpty() && Character.isDigit(text.charAt(text.length() - 1));
    long millis = JavaUtils.timeStringAs(bare ? text + "s" : text, TimeUnit.MILLISECONDS);
    return millis >= min && millis <= max ? millis : null;
  }

  private static Integer port(String text) {
    int port = Integer.parseInt(text);
    return port == 0 || port >= 1024 && port <= 65_535 ? port : null;
  }

  private static Integer within(String text, int min, int max) {
    int number = Integer.parseInt(text);
    return number >= min && number <= max ? number : null;
  }

  /** Checks the characters only: the driver cannot know which names an executor's machine resolves. */
  private static String address(String text) {
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      boolean good = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || ".-_:[]%".indexOf(c) >= 0;
      if (!good) {
        return null;
      }
    }
    return text.isEmpty() ? null : text;
  }
}
