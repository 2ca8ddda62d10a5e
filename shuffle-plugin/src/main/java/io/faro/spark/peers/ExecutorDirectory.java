package io.faro.spark.peers;

import io.faro.Nullable;
import java.util.HashMap;
import java.util.Map;
import java.util.function.LongSupplier;

/**
 * Knows where the block managers of the executors are, for clusters in which the map status has the address of an
 * external shuffle service. One question to the driver answers for all executors; it is repeated only for an executor
 * that the last answer did not have, and once for all look-ups that wait at that time.
 */
final class ExecutorDirectory {
  /** The driver's answer. */
  interface Source {
    /** The executors that are alive, by id. */
    Map<String, PeerKey> alive() throws Exception;
  }

  private final Source source;
  private final LongSupplier nanos;
  private Map<String, PeerKey> known = new HashMap<>();
  private long askedAt;
  private boolean asked;

  ExecutorDirectory(Source source, LongSupplier nanos) {
    this.source = source;
    this.nanos = nanos;
  }

  /** Null if the driver said after {@code since} that there is no such executor. */
  @Nullable synchronized PeerKey find(String executor, long since) throws Exception {
    PeerKey place = known.get(executor);
    if (place != null || asked && askedAt - since >= 0) {
      return place;
    }
    long now = nanos.getAsLong();
    known = new HashMap<>(source.alive());
    askedAt = now;
    asked = true;
    return known.get(executor);
  }

  /** The executor does not answer: the next look-up asks the driver whether it is alive. */
  synchronized void doubt(String executor) {
    known.remove(executor);
  }
}
