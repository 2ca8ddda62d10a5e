package io.faro;

import java.nio.ByteBuffer;

/**
 * The JNI boundary, one method for each symbol of native/jni. Package-private: the public API is {@link Endpoint}.
 *
 * <p>All methods throw a {@link FaroException} subtype, never leave the process. {@code endpoint}
 * is a handle from {@link #start}; after {@link #free} no method may be called with it (the owner,
 * Endpoint, guards that).
 */
final class Native {
  private Native() {}

  /** Version of the library; must equal the jar's. */
  static native String version();

  /** Opens an endpoint. Fabric: 0 auto, 1 tcp, 2 shm. */
  static native long start(
      String name, int fabric, String bind, String advertise, int port, long memoryLimit, long requestTimeoutMillis);

  static native byte[] card(long endpoint);

  static native long addPeer(long endpoint, byte[] card);

  /** {@code blocks}: direct buffer, count x 24 bytes of wire BlockId from position 0. */
  static native long fetch(long endpoint, long peer, ByteBuffer blocks, int count, long timeoutMillis);

  static native void cancel(long endpoint, long request);

  /**
   * Waits up to {@code timeoutMillis}, fills {@code records} (direct) with whole crossing records and returns
   * their bytes; 0: nothing happened; -1: the endpoint is closed.
   */
  static native int completions(long endpoint, ByteBuffer records, long timeoutMillis);

  /** Returns a batch's memory to the arena; exactly once per batch handle. */
  static native void releaseBatch(long batch);

  /** A direct buffer over a slab (valid while any batch of it is unreleased). */
  static native ByteBuffer slab(long endpoint, int index);

  /**
   * Waits for map outputs to resolve: {@code out} gets pairs (shuffleId, mapId); returns the number of pairs,
   * 0 for none, -1 for a closed endpoint.
   */
  static native int unresolved(long endpoint, long[] out, long timeoutMillis);

  /** Answers one; both paths null: no such output. */
  static native void resolve(long endpoint, int shuffleId, long mapId, String dataPath, String indexPath);

  static native void forgetShuffle(long endpoint, int shuffleId);

  /** Names and values, alternating as {@code name=value} lines. */
  static native String counters(long endpoint);

  /** Ends all requests, stops all threads, lets all waiting callers return. Idempotent. */
  static native void close(long endpoint);

  /** Frees the handle after {@link #close} and after all callers have left. */
  static native void free(long endpoint);

  /** Log lines that waited in native code, {@code level \t target \t text} per line ('\n' escaped); null: none. */
  static native String drainLog();

  /** Most verbose level that native code should keep: 1 error .. 5 trace. */
  static native void logLevel(int level);
}
