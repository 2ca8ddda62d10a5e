package io.faro;

import java.nio.ByteBuffer;

/**
 * The JNI boundary, one method for each symbol of native/jni. Package-private: the public API is {@link Endpoint}.
 *
 * <p>Handles are numbers with a generation, not addresses. A stale or unknown handle throws: for an endpoint {@link
 * EndpointException.Closed}, for a batch, buffer or slab reference {@link IllegalStateException}. A running call keeps
 * the objects that it uses, so {@link #free} is allowed at any time. Null, heap buffers and counts out of bounds throw
 * {@link IllegalArgumentException}; a panic throws {@link EndpointException.NativeFault}.
 */
final class Native {
  private Native() {}

  /** Returns the version of the library, which must equal the jar's. */
  static native String version();

  /**
   * Opens an endpoint and returns its handle. {@code settings} has the form of {@link EndpointConfig#settings}. {@code
   * secret} is the application's, or {@code null} for none; it is copied. {@code queues} is the number of completion
   * queues, 1 to {@value EndpointConfig#MAX_COMPLETION_THREADS}.
   */
  static native long start(String settings, byte[] secret, int queues) throws FaroException;

  static native byte[] card(long endpoint) throws FaroException;

  /** Adds a peer and returns its handle. {@code addresses} are IP literals, one per line. */
  static native long addPeer(long endpoint, byte[] card, String addresses) throws FaroException;

  /**
   * Starts a fetch and returns its number. {@code blocks} is a direct buffer with {@code count} x 24 bytes of wire
   * BlockId from position 0. A {@code timeoutMillis} of 0 stands for the endpoint's own timeout. {@code verifies}: the
   * reader verifies the blocks by checksums in them.
   */
  static native long fetch(long endpoint, long peer, ByteBuffer blocks, int count, long timeoutMillis,
      boolean verifies) throws FaroException;

  /** Starts to stage a file that is being written and returns a handle; 0 if the endpoint does not want it. */
  static native long stage(long endpoint) throws FaroException;

  /** Appends the file's next bytes. Returns false if no more are wanted. */
  static native boolean stageBytes(long staged, byte[] bytes, int offset, int length) throws FaroException;

  /** Ends the copy, because the file's next bytes are left out. */
  static native void stageEnd(long staged);

  static native void dropStaged(long staged);

  /** Announces a map output. Takes over {@code staged} even if this throws; 0 stands for none. */
  static native void committed(long endpoint, int shuffle, long map, String data, String index, long staged)
      throws FaroException;

  static native void cancel(long endpoint, long request) throws FaroException;

  /** Returns whether requests to the peer failed a short time ago; false for an unknown peer. */
  static native boolean isBackedOff(long endpoint, long peer) throws FaroException;

  /** Begins the peer's back-off because of a failure that native code could not see. */
  static native void blame(long endpoint, long peer) throws FaroException;

  /**
   * Waits up to {@code timeoutMillis}, fills {@code records} (direct) with whole records of a queue and returns their
   * bytes. Returns 0 if there was no record, and -1 if the endpoint is closed and everything was handed over. A smaller
   * number is the size of the next record, negated, if it does not fit. One thread at a time may call it for each
   * queue. All records of a request are in one queue.
   */
  static native int completions(long endpoint, int queue, ByteBuffer records, long timeoutMillis) throws FaroException;

  /**
   * Returns the memory of {@code count} slices of a batch to the arena, from position {@code first} on; exactly once
   * per slice. The batch's handle ends with its last slice.
   */
  static native void releaseSlices(long batch, int first, int count);

  /**
   * Leases memory of the arena and returns its handle. Waits for it up to {@code timeoutMillis} (at most 60 s in one
   * call), then throws {@link EndpointException.Exhausted}. {@code position} receives slab, offset and capacity.
   */
  static native long acquireBuffer(long endpoint, int bytes, long timeoutMillis, int[] position) throws FaroException;

  /** Returns leased memory; exactly once per handle. */
  static native void releaseBuffer(long buffer);

  /** Keeps a slab mapped until {@link #releaseSlab}, even if its endpoint ends. */
  static native long referenceSlab(long endpoint, int index) throws FaroException;

  /** Returns a direct buffer over the slab's bytes, which must not be used after {@link #releaseSlab}. */
  static native ByteBuffer slabBytes(long slab);

  /** Releases a slab reference; exactly once. */
  static native void releaseSlab(long slab);

  /**
   * Waits for map outputs to resolve. {@code out} receives pairs (shuffleId, mapId). Returns the number of pairs, 0 for
   * none, and -1 for a closed endpoint.
   */
  static native int unresolved(long endpoint, long[] out, long timeoutMillis) throws FaroException;

  /** Answers the question for one map output; two null paths mean that there is no such output. */
  static native void resolve(long endpoint, int shuffleId, long mapId, String dataPath, String indexPath)
      throws FaroException;

  static native void forgetShuffle(long endpoint, int shuffleId) throws FaroException;

  /** Returns the counters as lines of {@code name=value}. */
  static native String counters(long endpoint) throws FaroException;

  /** Ends all requests, stops all threads, and lets all waiting callers return. Idempotent. */
  static native void close(long endpoint) throws FaroException;

  /** Frees the handle. Call it after {@link #close} and after all callers have returned. */
  static native void free(long endpoint) throws FaroException;

  /**
   * Waits up to {@code timeoutMillis} for log lines and takes all of them: {@code level \t target \t text}, one per
   * line, with line breaks in the text escaped. Returns {@code null} if none came.
   */
  static native String drainLog(long timeoutMillis);

  /**
   * Sets the most verbose level that native code logs: 0 none, 1 error .. 5 trace. The first call installs the logger.
   */
  static native void logLevel(int level);
}
