package io.faro.spark;

import io.faro.Fabric;
import io.faro.FaroException;
import io.faro.OutputFiles;
import java.util.Map;
import org.apache.spark.network.buffer.ManagedBuffer;

/**
 * What the Spark side needs of an endpoint, and no more: the seam at which tests put a transport that fails in
 * exactly the way they want. The one real implementation is {@link EndpointTransport}.
 */
interface FaroTransport extends AutoCloseable {
  /** Most blocks of one fetch. */
  int maxBlocks();

  /** What a peer must know to reach this endpoint. */
  byte[] card() throws FaroException;

  /** A handle for the endpoint behind a card. Does not connect. */
  long addPeer(byte[] card) throws FaroException;

  /** Starts a fetch and returns at once. When it throws, the sink is never called. */
  Fetch fetch(long peer, ShuffleIds ids, Sink sink) throws FaroException;

  /** A map output was written. */
  void committed(int shuffleId, long mapId, OutputFiles files);

  void forgetShuffle(int shuffleId);

  Map<String, Long> counters();

  /** Ends all fetches. Idempotent. */
  @Override
  void close();

  /** A fetch under way. */
  interface Fetch {
    void cancel();
  }

  /** What becomes of a fetch. Calls come one after the other, on a thread that must not be held up. */
  interface Sink {
    void onBlocks(Batch batch);

    /** {@code count} blocks from position {@code first} will not come. */
    void onError(int first, int count, Throwable error);

    /** Nothing follows. */
    void onComplete();
  }

  /** A run of blocks of one fetch; valid during the call that brings it. */
  interface Batch {
    /** Position of the first block in the fetch. */
    int first();

    int count();

    /** How the bytes came. */
    Fabric fabric();

    /** {@code null}: block {@code i} of this batch is there; else why the owner does not give it. */
    String problem(int i);

    /** Block {@code i}, with one reference that the caller owns. */
    ManagedBuffer take(int i);
  }
}
