package io.faro.spark.read;

import java.util.concurrent.ExecutionException;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.shuffle.FetchFailedException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Decides whether a part of a group that arrived damaged is fetched a second time, and fetches it. */
final class SecondFetch {
  private static final Logger LOG = LoggerFactory.getLogger(SecondFetch.class);

  private final PartFetch network;
  private final PartFailure failure;

  SecondFetch(PartFetch network, PartFailure failure) {
    this.network = network;
    this.failure = failure;
  }

  /**
   * Returns the bytes of part {@code at} from a second fetch; the caller owns their one reference. Throws what ends the
   * task if there may be none.
   *
   * @param bytes the corrupt ones
   * @param isSecond whether those are of a second fetch: there is no third
   * @param handedOut whether the task has rows or records of the part, which it would have twice
   */
  ManagedBuffer ofCorrupt(Group group, int at, String problem, ManagedBuffer bytes, boolean isSecond,
      boolean handedOut) throws FetchFailedException {
    if (isSecond || handedOut) {
      throw failure.corrupt(group.address, group.parts, at, problem, bytes);
    }
    return fetch(group, at, problem);
  }

  /** Waits for the bytes. */
  private ManagedBuffer fetch(Group group, int at, String problem) throws FetchFailedException {
    LOG.warn("Faro: block {} of {} is corrupt ({}) and is fetched once more", group.parts.id(at), group.address,
        problem);
    try {
      return network.fetch(group.address, group.parts, at);
    } catch (ExecutionException e) {
      throw failure.failed(group.address, group.parts, at, "corrupt, and not fetched once more", e.getCause());
    }
  }
}
