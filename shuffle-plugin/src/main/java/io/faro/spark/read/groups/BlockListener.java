package io.faro.spark.read.groups;

import io.faro.Nullable;
import io.faro.spark.metrics.Reason;
import org.apache.spark.network.buffer.ManagedBuffer;

/**
 * Receives the blocks of one request, from any thread and maybe before the call that asks for them returns. Each block
 * arrives, is left, or is abandoned because its task ended.
 */
public interface BlockListener {
  /** Block {@code at} of the request has arrived; the listener owns its one reference. */
  void arrived(int at, ManagedBuffer data);

  /**
   * The source that was asked does not bring these blocks. {@code reason}: null if Spark's own fetch has failed, too;
   * {@code onTaskThread}: the calling thread is the task's, and may block.
   */
  void left(int[] at, @Nullable Reason reason, @Nullable Throwable cause, boolean onTaskThread);

  /**
   * Returns whether every block is verified by checksums in it before rows or records of it are used, so that it need
   * not be checked on its way.
   */
  default boolean verifies() {
    return false;
  }

  /** The task is over; the blocks that neither arrived nor were left do not come. Idempotent. */
  default void abandoned() {}
}
