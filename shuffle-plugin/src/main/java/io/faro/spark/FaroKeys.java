package io.faro.spark;

import io.faro.ExchangePolicy;
import io.faro.FabricChoice;
import io.faro.RegionMode;
import io.faro.Staging;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.apache.spark.network.util.JavaUtils;

/**
 * All keys of Faro, in the order of docs/configuration.md, which is generated from this table. One table, so that
 * what is parsed, what an error message allows and what the manual says cannot drift apart.
 */
final class FaroKeys {
  static final String PREFIX = "spark.faro.";

  /** Stands for "not set". */
  static final String BIND_ADDRESS_DEFAULT = "(the executor's address)";

  /** Stands for "not set". */
  static final String VERBS_CHOSEN = "(chosen)";

  private static final long MIN_MEMORY = 32L << 20;

  static final Key<FabricChoice> FABRIC = new Key<>(
      PREFIX + "fabric", "name", "auto",
      "auto, verbs, tcp, shm",
      "How bytes move. `auto` opens every fabric that works here and takes the best one for each pair of executors: "
          + "shared memory between executors of one host, RDMA (`verbs`) where both have a device, TCP otherwise. The "
          + "others open that one only; `shm` reaches executors of the same host and nothing else.",
      FaroKeys::fabric);

  static final Key<Fallback> FALLBACK = new Key<>(
      PREFIX + "fallback", "name", "auto", "auto, never",
      "What happens to a remote shuffle block that does not come through Faro. `auto`: Spark's own fetch brings it. "
          + "`never`: it is a fetch failure, and whatever keeps Faro from working (see Standing aside) stops the "
          + "application; meant for tests and for measuring.",
      FaroKeys::fallback);

  static final Key<Long> MEMORY_LIMIT = new Key<>(
      PREFIX + "memory.limit", "byte size", "256m", "a byte size of at least 32m, such as 256m or 1g",
      "Hard limit of the native memory that holds blocks on their way, per executor. It is taken in steps as it is "
          + "needed, lies outside the JVM's heap and its direct memory, and belongs into "
          + "`spark.executor.memoryOverhead` (see Memory). A number alone is bytes.",
      FaroKeys::memory);

  static final Key<Long> IDLE_RELEASE_MS = new Key<>(
      PREFIX + "memory.idleRelease", "duration", "60s", "0 (never) or a duration of 100ms to 24h, such as 60s or 5min",
      "How long a 16 MiB slab of that memory goes unused before it is de-registered with the RDMA device and given "
          + "back to the system; one slab stays. It comes back when there is need. Huge pages are de-registered, but "
          + "kept. 0 keeps all that was ever needed. A number alone is seconds.",
      text -> text.equals("0") ? Long.valueOf(0) : millis(text, 100, TimeUnit.HOURS.toMillis(24)));

  static final Key<Long> REQUEST_TIMEOUT_MS = new Key<>(
      PREFIX + "request.timeout", "duration", "30s", "a duration of at least 100ms and at most 1h, such as 30s or 2min",
      "How long a request may go without progress before Faro gives it up. It is tried once more on the fabric within "
          + "this time. A number alone is seconds.",
      text -> millis(text, 100, TimeUnit.HOURS.toMillis(1)));

  static final Key<Integer> PORT = new Key<>(
      PREFIX + "port", "port", "0", "0 (any free port) or 1024 to 65535",
      "TCP port that an executor listens on. If it is taken, the following ports are tried, "
          + "`spark.port.maxRetries` of them, as for Spark's own ports: executors of one host need that many. RDMA "
          + "pairs its connections on the first free port after it (32 are tried).",
      FaroKeys::port);

  static final Key<String> BIND_ADDRESS = new Key<>(
      PREFIX + "bindAddress", "address", BIND_ADDRESS_DEFAULT,
      "an IP address or a host name of the executor's machine, or 0.0.0.0",
      "Address that an executor listens on. By default the one its block manager is known by; if that is not an "
          + "address of this machine (address translation), 0.0.0.0. Peers are always told the block manager's "
          + "address.",
      FaroKeys::address);

  static final Key<String> VERBS_DEVICE = new Key<>(
      PREFIX + "verbs.device", "name", VERBS_CHOSEN, "a device such as mlx5_0, or one of its ports such as mlx5_0:1",
      "RDMA device. By default the one whose port has the executor's address, else the first active one whose "
          + "address can be routed. `rdma link` lists them.",
      FaroKeys::device);

  static final Key<Integer> VERBS_GID_INDEX = new Key<>(
      PREFIX + "verbs.gidIndex", "number", VERBS_CHOSEN, "0 to 255",
      "Index of the address (GID) in the port's table. By default that of a RoCE v2 address, found as for the device.",
      text -> text.equals(VERBS_CHOSEN) ? Integer.valueOf(-1) : within(text, 0, 255));

  static final Key<Integer> VERBS_TRAFFIC_CLASS = new Key<>(
      PREFIX + "verbs.trafficClass", "number", "0", "0 to 255",
      "Traffic class of RDMA packets; switches look at its upper six bits (DSCP). For example 104 for DSCP 26, which "
          + "many lossless set-ups use.",
      text -> within(text, 0, 255));

  static final Key<Integer> VERBS_RETRY_COUNT = new Key<>(
      PREFIX + "verbs.retryCount", "number", "7", "0 to 7",
      "Times that the device sends a packet again before it gives the connection up; the pair then takes TCP and "
          + "tries RDMA again later.",
      text -> within(text, 0, 7));

  static final Key<Integer> VERBS_RNR_RETRY = new Key<>(
      PREFIX + "verbs.rnrRetry", "number", "7", "0 to 7; 7 is without end",
      "Times that the device sends a packet again to a peer that is not ready for it. Faro's own flow control keeps "
          + "this from happening; it is the net below.",
      text -> within(text, 0, 7));

  static final Key<Integer> VERBS_TIMEOUT = new Key<>(
      PREFIX + "verbs.timeout", "number", "14", "1 to 31",
      "Time before the device sends a packet again: 4.096 µs x 2^n, so that 14 is 67 ms.",
      text -> within(text, 1, 31));

  static final Key<RegionMode> REGIONS = new Key<>(
      PREFIX + "regions", "name", "unpinned", "unpinned, odp, pinned",
      "How map outputs are made readable for RDMA devices. `unpinned`: not at all, their bytes pass through the arena, "
          + "so that what is registered is bounded by `spark.faro.memory.limit`. `pinned`: every map output is mapped "
          + "and registered as a whole, beyond that limit. `odp`: the same with on-demand paging, where the device "
          + "has it. The last two are for comparison; blocks that do not travel over RDMA are always `unpinned`.",
      text -> named(RegionMode.values(), mode -> mode.code, text));

  static final Key<Staging> STAGING = new Key<>(
      PREFIX + "staging", "name", "onDemand", "onDemand, onCommit, planned",
      "Which bytes of map outputs are brought into the arena, where peers read them without this executor's part. "
          + "`onDemand`: what is asked for often. `onCommit`: also what was just written, while there is room in half "
          + "of the arena. `planned`: also what an executor asks for while its turn has not come (see "
          + "`spark.faro.exchange`).",
      text -> named(Staging.values(), staging -> staging.code, text));

  static final Key<ExchangePolicy> EXCHANGE = new Key<>(
      PREFIX + "exchange", "name", "random", "grouped, rotated, random",
      "In which order an executor reads from the others and serves them, and from how many at once. `grouped`: by a "
          + "schedule of small groups, about the root of the number of executors at a time. `rotated`: around a ring, "
          + "as many at a time. `random`: all at once, as Spark asks for them. When to use which: docs/scaling.md.",
      text -> named(ExchangePolicy.values(), policy -> policy.code, text));

  static final Key<Long> EXCHANGE_SLICE_MS = new Key<>(
      PREFIX + "exchange.slice", "duration", "20ms",
      "a duration of at least 1ms and at most 10s, such as 20ms or 1s",
      "How long one round of the schedule is preferred while others wait, and how long an executor may be silent, "
          + "at least, before its place is given to another. A number alone is seconds.",
      text -> millis(text, 1, 10_000));

  static final List<Key<?>> ALL = Collections.unmodifiableList(Arrays.<Key<?>>asList(
      FABRIC, FALLBACK, MEMORY_LIMIT, IDLE_RELEASE_MS, REQUEST_TIMEOUT_MS, PORT, BIND_ADDRESS, REGIONS, STAGING,
      EXCHANGE, EXCHANGE_SLICE_MS, VERBS_DEVICE, VERBS_GID_INDEX, VERBS_TRAFFIC_CLASS, VERBS_RETRY_COUNT,
      VERBS_RNR_RETRY, VERBS_TIMEOUT));

  private FaroKeys() {}

  /** What becomes of a block that Faro cannot bring. */
  enum Fallback { AUTO, NEVER }

  private static <T> T named(T[] all, Function<T, String> name, String text) {
    return Arrays.stream(all).filter(one -> name.apply(one).equals(text)).findFirst().orElse(null);
  }

  private static FabricChoice fabric(String text) {
    switch (text) {
      case "auto":
        return FabricChoice.AUTO;
      case "verbs":
        return FabricChoice.VERBS;
      case "tcp":
        return FabricChoice.TCP;
      case "shm":
        return FabricChoice.SHM;
      default:
        return null;
    }
  }

  private static Fallback fallback(String text) {
    return "auto".equals(text) ? Fallback.AUTO : "never".equals(text) ? Fallback.NEVER : null;
  }

  private static Long memory(String text) {
    long bytes = JavaUtils.byteStringAsBytes(text);
    return bytes >= MIN_MEMORY ? bytes : null;
  }

  private static Long millis(String text, long least, long most) {
    // timeStringAs gives a bare number the unit it is asked for; milliseconds must stay possible.
    boolean bare = !text.isEmpty() && Character.isDigit(text.charAt(text.length() - 1));
    long millis = JavaUtils.timeStringAs(bare ? text + "s" : text, TimeUnit.MILLISECONDS);
    return millis >= least && millis <= most ? millis : null;
  }

  private static Integer port(String text) {
    int port = Integer.parseInt(text);
    return port == 0 || port >= 1024 && port <= 65_535 ? port : null;
  }

  private static Integer within(String text, int least, int most) {
    int number = Integer.parseInt(text);
    return number >= least && number <= most ? number : null;
  }

  private static String device(String text) {
    return text.equals(VERBS_CHOSEN) || text.matches("[A-Za-z0-9_.-]+(:[0-9]+)?") ? text : null;
  }

  /** By its characters only: whether the name exists is known on the executor alone. */
  private static String address(String text) {
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      boolean good = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || ".-_:[]%".indexOf(c) >= 0;
      if (!good && !text.equals(BIND_ADDRESS_DEFAULT)) {
        return null;
      }
    }
    return text.isEmpty() ? null : text;
  }
}
