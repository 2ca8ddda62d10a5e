package io.faro.spark.ui;

/** What one executor got from one peer. Public fields: Spark's JSON mapper reads and writes them. */
public final class PeerFigures {
  /** Executor id, host and port, as in the log. */
  public String peer;
  public long requests;
  public long blocks;
  public long bytes;
  /** Sum over the requests, from their start to their end; they overlap. */
  public long nanos;
  /** The longest request. */
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
