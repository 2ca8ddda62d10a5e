package io.faro.spark.metrics;

/** Figures of one executor's fetches from one peer. The fields are public for Spark's JSON mapper. */
public final class PeerFigures {
  /** Executor id, host and port, as in the log; or the node service, by its host. */
  public String peer;
  public long requests;
  public long blocks;
  public long bytes;
  /** Sum over the requests, from their start to their end; they overlap. */
  public long nanos;
  public long slowestNanos;

  PeerFigures copy() {
    PeerFigures copy = new PeerFigures();
    copy.peer = peer;
    copy.requests = requests;
    copy.blocks = blocks;
    copy.bytes = bytes;
    copy.nanos = nanos;
    copy.slowestNanos = slowestNanos;
    return copy;
  }
}
