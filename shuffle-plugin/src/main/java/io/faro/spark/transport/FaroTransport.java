package io.faro.spark.transport;

import io.faro.BlockIds;
import io.faro.FaroException;
import io.faro.FetchListener;
import java.net.InetAddress;
import java.util.List;

/**
 * The part of an endpoint by which blocks are fetched. {@link EndpointTransport} is one in production; tests have one
 * that fails as they need.
 */
public interface FaroTransport {
  /** Most blocks of one fetch. */
  int maxBlocks();

  /** A handle for the endpoint behind a card. Does not connect. */
  long addPeer(byte[] card, List<InetAddress> knownAt) throws FaroException;

  /**
   * Starts a fetch and returns at once. When it throws, the listener is never called. {@code verifies}: the reader
   * verifies the blocks by checksums in them.
   */
  Fetch fetch(long peer, BlockIds ids, FetchListener listener, boolean verifies) throws FaroException;

  /** Returns whether requests to the peer failed a short time ago, so that a new one is likely to cost a timeout. */
  boolean isBackedOff(long peer);

  /** Begins the peer's back-off because of a failure that the endpoint could not see. */
  void blame(long peer);

  /** A fetch in flight. */
  interface Fetch {
    void cancel();
  }
}
