package io.faro;

import java.nio.ByteBuffer;

/**
 * The JNI boundary, one method for each symbol of native/jni. Package-private: the public API is {@link Endpoint}.
 *
 * <p>Handles are numbers with a generation, not addresses. A stale or unknown handle throws: for an endpoint
 * {@link EndpointException.Closed}, for a batch, buffer or slab reference {@link IllegalStateException}. A running call
 * keeps the objects that it uses, so {@link #free} is allowed at any time. Null, heap buffers and counts out of bounds
 * throw {@link IllegalArgumentException}; a panic throws {@link EndpointException.NativeFault}.
 */
final class Native {
  private Native() {}

  /** Version of the library; must equal the jar's. */
  static native String version();

  /**
   * Opens an endpoint and returns its handle. {@code settings}: see {@link EndpointConfig#settings}; {@code secret}: of
   * the application, copied, {@code null} for none; {@code queues}: of completions, 1 to
   * {@value EndpointConfig#MAX_COMPLETION_THREADS}.
   */
  static native long start(String settings, byte[] secret, int queues) throws FaroException;

  static native byte[] card(long endpoint) throws FaroException;

  /** {@code addresses}: IP literals, one in a line. */
  static native long addPeer(long endpoint, byte[] card, String addresses) throws FaroException;

  /**
   * Starts a fetch and returns its number. {@code blocks}: direct buffer, count x 24 bytes of wire BlockId from
   * position 0. {@code timeoutMillis} 0: the endpoint's own timeout.
   */
  static native long fetch(long endpoint, long peer, ByteBuffer blocks, int count, long timeoutMillis)
      throws FaroException;

  /** A file that is staged while it is written; 0: the endpoint does not want it. */
  static native long stage(long endpoint) throws FaroException;

  /** The file's next bytes. False: no more are wanted. */
  static native boolean stageBytes(long staged, byte[] bytes, int offset, int length) throws FaroException;

  /** The file's next bytes are left out. */
  static native void stageEnd(long staged);

  static native void dropStaged(long staged);

  /** {@code staged} is taken, also if this throws; 0: none. */
  static native void committed(long endpoint, int shuffle, long map, String data, String index, long staged)
      throws FaroException;

  static native void cancel(long endpoint, long request) throws FaroException;

  /**
   * Waits up to {@code timeoutMillis}, fills {@code records} (direct) with whole records of a queue and returns
   * their bytes. 0: nothing happened. -1: the endpoint is closed and everything was handed over. Less: the next
   * record alone needs that many bytes, negated. One caller at a time for each queue. All records of a request are in
   * one queue.
   */
  static native int completions(long endpoint, int queue, ByteBuffer records, long timeoutMillis) throws FaroException;

  /**
   * Returns the memory of {@code count} slices of a batch, from position {@code first} on, to the arena; exactly once
   * per slice. With its last slice the batch's handle ends.
   */
  static native void releaseSlices(long batch, int first, int count);

  /**
   * Leases memory of the arena, waiting up to {@code timeoutMillis} (at most 60 s in one call) for it; its handle.
   * {@code position} gets slab, offset and capacity. {@link EndpointException.Exhausted}: none came in time.
   */
  static native long acquireBuffer(long endpoint, int bytes, long timeoutMillis, int[] position) throws FaroException;

  /** Returns such memory; exactly once per handle. */
  static native void releaseBuffer(long buffer);

  /** Keeps a slab mapped, whatever becomes of its endpoint, until {@link #releaseSlab}. */
  static native long referenceSlab(long endpoint, int index) throws FaroException;

  /** A direct buffer over the slab's bytes; not to be touched after {@link #releaseSlab}. */
  static native ByteBuffer slabBytes(long slab);

  /** Releases a reference; exactly once. */
  static native void releaseSlab(long slab);

  /**
   * Waits for map outputs to resolve: {@code out} gets pairs (shuffleId, mapId); returns the number of pairs,
   * 0 for none, -1 for a closed endpoint.
   */
  static native int unresolved(long endpoint, long[] out, long timeoutMillis) throws FaroException;

  /** Answers one; both paths null: no such output. */
  static native void resolve(long endpoint, int shuffleId, long mapId, String dataPath, String indexPath)
      throws FaroException;

  static native void forgetShuffle(long endpoint, int shuffleId) throws FaroException;

  /** Names and values, alternating as {@code name=value} lines. */
  static native String counters(long endpoint) throws FaroException;

  /** Ends all requests, stops all threads, lets all waiting callers return. Idempotent. */
  static native void close(long endpoint) throws FaroException;

  /** Frees the handle after {@link #close} and after all callers have left. */
  static native void free(long endpoint) throws FaroException;

  /**
   * Waits up to {@code timeoutMillis} for log lines and takes all there are: {@code level \t target \t text}, one per
   * line, line breaks in the text escaped; {@code null}: none came.
   */
  static native String drainLog(long timeoutMillis);

  /** Most verbose level that native code keeps: 0 none, 1 error .. 5 trace. The first call installs the logger. */
  static native void logLevel(int level);
}
