package io.faro.spark.transport;

import io.faro.Fabric;
import io.faro.FaroException;
import io.faro.OutputFiles;
import io.faro.StagedOutput;
import java.net.InetAddress;
import java.util.List;
import java.util.Map;
import org.apache.spark.network.buffer.ManagedBuffer;

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

  /** Starts a fetch and returns at once. When it throws, the sink is never called. */
  Fetch fetch(long peer, ShuffleIds ids, Sink sink) throws FaroException;

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

  /** Gets the results of a fetch. Calls come one after the other, on a thread that must not block. */
  interface Sink {
    void onBlocks(Batch batch);

    /** {@code count} blocks from position {@code first} have failed. */
    void onError(int first, int count, Throwable error);

    /** The last call. */
    void onComplete();
  }

  /** Consecutive blocks of one fetch; valid during the call of {@link Sink#onBlocks}. */
  interface Batch {
    /** Position of the first block in the fetch. */
    int first();

    int count();

    /** The transport of the bytes. */
    Fabric fabric();

    /** {@code null}: block {@code i} of this batch has arrived; else the server's reason. */
    String problem(int i);

    /** Block {@code i}, with one reference that the caller owns. */
    ManagedBuffer take(int i);
  }
}
