package io.faro.spark.fetch;

import io.faro.spark.metrics.Reason;
import org.apache.spark.network.buffer.ManagedBuffer;

/** Receives the blocks of one request. Every block is delivered, undelivered, or cancelled because its task ended. */
interface Receiver {
  /** Block {@code at} of the request; takes over the reference. */
  void arrived(int at, ManagedBuffer data);

  /** Faro does not deliver these blocks; {@code onTaskThread}: the calling thread is the task's, and may block. */
  void left(String[] blocks, Reason reason, Throwable cause, boolean onTaskThread);

  /** The task is over; the blocks that neither arrived nor were left do not come. */
  void abandoned();
}
