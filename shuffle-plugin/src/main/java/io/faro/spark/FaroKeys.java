package io.faro.spark;

import io.faro.FabricChoice;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.spark.network.util.JavaUtils;

/**
 * All keys of Faro, in the order of docs/configuration.md, which is generated from this table. One table, so that
 * what is parsed, what an error message allows and what the manual says cannot drift apart.
 */
final class FaroKeys {
  static final String PREFIX = "spark.faro.";

  /** Stands for "not set". */
  static final String BIND_ADDRESS_DEFAULT = "(the executor's address)";

  private static final long MIN_MEMORY = 32L << 20;

  static final Key<FabricChoice> FABRIC = new Key<>(
      PREFIX + "fabric", "name", "auto",
      "auto, tcp, shm (verbs is not in this build)",
      "How bytes move. `auto` opens every fabric that works here and takes the best one for each pair of executors: "
          + "shared memory between executors of one host, TCP otherwise. `tcp` and `shm` open that one only; `shm` "
          + "reaches executors of the same host and nothing else. `verbs` (RDMA) is not in this build and stops "
          + "start-up.",
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

  static final Key<Long> REQUEST_TIMEOUT_MS = new Key<>(
      PREFIX + "request.timeout", "duration", "30s", "a duration of at least 100ms and at most 1h, such as 30s or 2min",
      "How long a request may go without progress before Faro gives it up. It is tried once more on the fabric within "
          + "this time. A number alone is seconds.",
      FaroKeys::timeout);

  static final Key<Integer> PORT = new Key<>(
      PREFIX + "port", "port", "0", "0 (any free port) or 1024 to 65535",
      "TCP port that an executor listens on. If it is taken, the following ports are tried, "
          + "`spark.port.maxRetries` of them, as for Spark's own ports: executors of one host need that many.",
      FaroKeys::port);

  static final Key<String> BIND_ADDRESS = new Key<>(
      PREFIX + "bindAddress", "address", BIND_ADDRESS_DEFAULT,
      "an IP address or a host name of the executor's machine, or 0.0.0.0",
      "Address that an executor listens on. By default the one its block manager is known by; if that is not an "
          + "address of this machine (address translation), 0.0.0.0. Peers are always told the block manager's "
          + "address.",
      FaroKeys::address);

  static final List<Key<?>> ALL = Collections.unmodifiableList(Arrays.<Key<?>>asList(
      FABRIC, FALLBACK, MEMORY_LIMIT, REQUEST_TIMEOUT_MS, PORT, BIND_ADDRESS));

  private FaroKeys() {}

  /** What becomes of a block that Faro cannot bring. */
  enum Fallback { AUTO, NEVER }

  private static FabricChoice fabric(String text) {
    switch (text) {
      case "auto":
        return FabricChoice.AUTO;
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

  private static Long timeout(String text) {
    // timeStringAs gives a bare number the unit it is asked for; milliseconds must stay possible.
    boolean bare = !text.isEmpty() && Character.isDigit(text.charAt(text.length() - 1));
    long millis = JavaUtils.timeStringAs(bare ? text + "s" : text, TimeUnit.MILLISECONDS);
    return millis >= 100 && millis <= TimeUnit.HOURS.toMillis(1) ? millis : null;
  }

  private static Integer port(String text) {
    int port = Integer.parseInt(text);
    return port == 0 || port >= 1024 && port <= 65_535 ? port : null;
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
