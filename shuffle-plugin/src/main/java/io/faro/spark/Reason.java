package io.faro.spark;

import io.faro.EndpointException;
import io.faro.FetchException;

/**
 * Why blocks did not come through Faro: what is counted, what a warning says one can do, and whether it speaks
 * against the peer (then the next requests to it do not try, for a while).
 */
public enum Reason {
  CARD_MISSING("cardMissing", false,
      "the peer has published no endpoint card; see whether its log has 'Faro ready:', and if not, why"),
  CARD_LATE("cardLate", false,
      "looking up the peer's endpoint card took too long; nothing to do if this stays rare"),
  PEER_RESTS("peerRests", false,
      "requests to the peer failed shortly before; it is tried again after a while"),
  UNREACHABLE("unreachable", true,
      "the executor may be gone; if not, see whether a firewall blocks its port (spark.faro.port makes it a known one) "
          + "or its spark.faro.bindAddress is wrong"),
  CONNECTION_LOST("connectionLost", true, "see the peer's log: it may have been killed or be out of memory"),
  TIMED_OUT("timedOut", true,
      "the peer or the network is slow or stuck; spark.faro.request.timeout can be raised"),
  SILENT("silent", true, "the native library did not answer; please report this with the executor's log"),
  CORRUPT("corrupt", true, "bytes arrived damaged and were refused; have memory, disks and network checked"),
  POOL_EXHAUSTED("poolExhausted", false,
      "raise spark.faro.memory.limit: tasks per executor x spark.reducer.maxSizeInFlight is a good size"),
  REFUSED("refused", false, "the peer has too much to do"),
  PROTOCOL("protocol", true, "do both executors run the same version of Faro?"),
  CLOSING("closing", false, "the executor is stopping"),
  CANCELLED("cancelled", false, "the task gave it up"),
  BLOCK_STATUS("blockStatus", false, "the peer cannot give these blocks; see its log"),
  TO_DISK("toDisk", false,
      "requests above spark.network.maxRemoteBlockSizeFetchToMem go to files, by Spark's own fetch"),
  FULL("full", false, "too many requests are in flight"),
  OTHER("other", true, "please report this with the executor's log");

  public final String key;
  final boolean speaksAgainstPeer;
  public final String hint;

  Reason(String key, boolean speaksAgainstPeer, String hint) {
    this.key = key;
    this.speaksAgainstPeer = speaksAgainstPeer;
    this.hint = hint;
  }

  static Reason of(Throwable error) {
    if (error instanceof FetchException.Unreachable) {
      return UNREACHABLE;
    } else if (error instanceof FetchException.ConnectionLost) {
      return CONNECTION_LOST;
    } else if (error instanceof FetchException.TimedOut) {
      return TIMED_OUT;
    } else if (error instanceof FetchException.Corrupt) {
      return CORRUPT;
    } else if (error instanceof FetchException.PoolExhausted) {
      return POOL_EXHAUSTED;
    } else if (error instanceof FetchException.Refused) {
      return REFUSED;
    } else if (error instanceof FetchException.Protocol) {
      return PROTOCOL;
    } else if (error instanceof FetchException.Closing || error instanceof EndpointException.Closed) {
      return CLOSING;
    } else if (error instanceof FetchException.Cancelled) {
      return CANCELLED;
    } else if (error instanceof EndpointException.Full) {
      return FULL;
    }
    return OTHER;
  }
}
