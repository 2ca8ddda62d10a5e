package io.faro.spark.write;

/**
 * Limits the memory of all buffers of a writer: less after Spark had no memory, and all of it again some bytes of rows
 * later. Each attempt may make Spark ask other consumers to spill, so each refusal doubles how many bytes those are. If
 * memory is there again when a task has written some bytes, buffers grow before it has written about twice as many.
 */
final class BufferLimit {
  private final long max;
  private long now;
  /** Bytes of rows between the last refusal and the next attempt. */
  private long pause;
  /** Bytes of rows. */
  private long nextAttempt;

  BufferLimit(long max) {
    this.max = max;
    now = max;
  }

  /** {@code rowBytes}: what the writer has taken so far. */
  long bytes(long rowBytes) {
    if (now < max && rowBytes >= nextAttempt) {
      now = max;
    }
    return now;
  }

  /** Spark had no memory for {@code wanted} bytes: the buffers go on with {@code kept}. */
  void refused(long wanted, long kept, long rowBytes) {
    now = Math.min(now, kept);
    pause = Math.max(2 * pause, wanted);
    nextAttempt = rowBytes + pause;
  }
}
