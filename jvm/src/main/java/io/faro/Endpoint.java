package io.faro;

import java.util.Map;

/** One per process: serves this process's map outputs to peers and fetches theirs. Thread-safe. */
public final class Endpoint implements AutoCloseable {
  private Endpoint() {}

  /** Opens the fabrics and starts the threads. */
  public static Endpoint start(EndpointConfig config, OutputResolver resolver) throws FaroException {
    throw new UnsupportedOperationException();
  }

  /** What a peer must know to reach this endpoint; text, at most 4 KiB. */
  public byte[] card() throws FaroException {
    throw new UnsupportedOperationException();
  }

  /** A handle for the endpoint behind a card; the same endpoint always gets the same handle. Does not connect. */
  public long addPeer(byte[] card) throws FaroException {
    throw new UnsupportedOperationException();
  }

  /**
   * Starts a fetch and returns at once. {@code blocks} may be reused on return. 0 ms: the endpoint's own timeout.
   * When this throws, the listener is never called.
   */
  public FetchHandle fetch(long peer, BlockIds blocks, long timeoutMillis, FetchListener listener)
      throws FaroException {
    throw new UnsupportedOperationException();
  }

  /** Forgets and closes all files of a shuffle that this endpoint serves. */
  public void forgetShuffle(int shuffleId) {
    throw new UnsupportedOperationException();
  }

  /** Counters by name, e.g. {@code remoteBlocks.tcp}; empty when closed. */
  public Map<String, Long> counters() {
    throw new UnsupportedOperationException();
  }

  /** Ends all fetches with {@link FetchException.Closing}, stops all threads. Blocks taken stay readable. Idempotent. */
  @Override
  public void close() {
    throw new UnsupportedOperationException();
  }
}
