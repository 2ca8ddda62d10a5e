package io.faro.spark.fetch;

import io.faro.Nullable;
import io.faro.spark.metrics.Reason;
import io.faro.spark.peers.PeerKey;
import io.faro.spark.transport.ShuffleIds;
import org.apache.spark.network.buffer.ManagedBuffer;

/** A place that may have blocks of an executor. {@link SourceChain} decides which one is asked next. */
interface Source {
  /** Gets what becomes of a request. Every block arrives, is left, or is abandoned because its task ended. */
  interface Receiver {
    /** Block {@code at} of the request; takes over the reference. */
    void arrived(int at, ManagedBuffer data);

    /**
     * The source does not bring these blocks, because it declines the request or fails; {@code onTaskThread}: the
     * calling thread is the task's, and may block.
     */
    void left(int[] at, Reason reason, @Nullable Throwable cause, boolean onTaskThread);

    /** The task is over; the blocks that neither arrived nor were left do not come. Idempotent. */
    void abandoned();
  }

  /** Asks for blocks of the executor {@code peer}; {@code receiver} may be called before this returns. */
  void ask(PeerKey peer, ShuffleIds ids, TaskFetches.Task task, Receiver receiver);
}
