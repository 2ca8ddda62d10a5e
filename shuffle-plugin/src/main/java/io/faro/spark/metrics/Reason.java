package io.faro.spark.metrics;

import io.faro.EndpointException;
import io.faro.FetchError;
import io.faro.FetchException;

/**
 * Reason why blocks did not arrive through Faro. Each reason has the name of its counter and advice for the warning.
 * Which of them begin the back-off of a peer: {@code native/endpoint/src/net/peer_backoff.rs}.
 */
public enum Reason {
  CARD_MISSING("cardMissing",
      "the peer has published no endpoint card; look for 'Faro ready:' or an error in its log"),
  CARD_TIMEOUT("cardTimeout",
      "looking up the peer's endpoint card took too long; ignore this if it is rare"),
  EXECUTOR_GONE("executorGone",
      "the executor has ended or is being decommissioned; the external shuffle service has its map outputs"),
  PEER_BACKOFF("peerBackoff",
      "requests to the peer failed shortly before; Faro tries it again after a while"),
  UNREACHABLE("unreachable",
      "the executor may have ended; if not, check whether a firewall blocks its port (spark.faro.port sets a fixed "
          + "one) or its spark.faro.bindAddress is wrong"),
  CONNECTION_LOST("connectionLost", "see the peer's log: it may have been killed or be out of memory"),
  TIMED_OUT("timedOut",
      "the peer or the network is slow or stuck; spark.faro.request.timeout can be raised"),
  UNRESPONSIVE("unresponsive", "the native library did not answer; please report this with the executor's log"),
  CORRUPT("corrupt", "bytes arrived damaged and were discarded; check memory, disks and network"),
  POOL_EXHAUSTED("poolExhausted",
      "raise spark.faro.memory.limit: tasks per executor x spark.reducer.maxSizeInFlight is a good size"),
  REFUSED("refused", "the peer is overloaded"),
  PROTOCOL("protocol", "the peer broke the protocol; check that both executors run the same version of Faro"),
  CLOSING("closing", "the executor is stopping"),
  CANCELLED("cancelled", "the task cancelled the request"),
  BLOCK_STATUS("blockStatus", "the peer cannot read these blocks; see its log"),
  ASKED_AGAIN("askedAgain",
      "Spark found the block damaged after Faro had delivered it (the task's log says how), so it now comes another "
          + "way; check memory and disks of both hosts"),
  FULL("full", "too many requests are in flight"),
  OTHER("other", "please report this with the executor's log");

  public final String key;
  public final String hint;

  Reason(String key, String hint) {
    this.key = key;
    this.hint = hint;
  }

  /** The reason that an exception of the endpoint, or of a fetch, stands for. */
  public static Reason of(Throwable error) {
    if (error instanceof FetchException) {
      return of(((FetchException) error).error());
    } else if (error instanceof EndpointException.Closed) {
      return CLOSING;
    } else if (error instanceof EndpointException.Full) {
      return FULL;
    }
    return OTHER;
  }

  private static Reason of(FetchError error) {
    switch (error) {
      case UNREACHABLE:
        return UNREACHABLE;
      case CONNECTION_LOST:
        return CONNECTION_LOST;
      case TIMED_OUT:
        return TIMED_OUT;
      case CORRUPT:
        return CORRUPT;
      case POOL_EXHAUSTED:
        return POOL_EXHAUSTED;
      case REFUSED:
        return REFUSED;
      case PROTOCOL:
        return PROTOCOL;
      case CLOSING:
        return CLOSING;
      case CANCELLED:
        return CANCELLED;
      default:
        throw new IllegalStateException("unknown error " + error);
    }
  }
}
