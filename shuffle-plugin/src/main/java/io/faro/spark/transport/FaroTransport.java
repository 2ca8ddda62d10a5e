package io.faro.spark.transport;

import io.faro.FaroException;
import io.faro.FetchListener;
import io.faro.OutputFiles;
import io.faro.StagedOutput;
import java.net.InetAddress;
import java.util.List;
import java.util.Map;

/**
 * The part of an endpoint that the plug-in uses. {@link EndpointTransport} implements it in production; tests have one
 * that fails as they need.
 */
public interface FaroTransport extends AutoCloseable {
  /** Most blocks of one fetch. */
  int maxBlocks();

  /** The card with which a peer can reach this endpoint. */
  byte[] card() throws FaroException;

  /** A handle for the endpoint behind a card. Does not connect. */
  long addPeer(byte[] card, List<InetAddress> knownAt) throws FaroException;

  /** Starts a fetch and returns at once. When it throws, the listener is never called. */
  Fetch fetch(long peer, ShuffleIds ids, FetchListener listener) throws FaroException;

  /** Returns whether requests to the peer failed a short time ago, so that a new one is likely to cost a timeout. */
  boolean isBackedOff(long peer);

  /** Begins the peer's back-off because of a failure that the endpoint could not see. */
  void blame(long peer);

  /** For a map output that is being written; {@code null}: its bytes are not wanted. */
  StagedOutput stage();

  /** A map output was written; {@code staged} may be {@code null}. */
  void committed(int shuffleId, long mapId, OutputFiles files, StagedOutput staged);

  void forgetShuffle(int shuffleId);

  Map<String, Long> counters();

  /** Ends all fetches. Idempotent. */
  @Override
  void close();

  /** A fetch in flight. */
  interface Fetch {
    void cancel();
  }
}
