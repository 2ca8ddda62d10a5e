package io.faro.service;

import io.faro.FaroException;

/** The JNI boundary of the node service, one method for each symbol of native/jni/src/service.rs. */
final class ServiceNative {
  private ServiceNative() {}

  /**
   * Registers an executor and returns its handle. {@code token} has 32 bytes; {@code secret} is the secret of Spark's
   * authentication, or {@code null}. Each message, this one included, may take {@code timeoutMillis}.
   */
  static native long connect(String directory, String application, String executor, boolean sealed, byte[] token,
      byte[] secret, long timeoutMillis) throws FaroException;

  static native byte[] card(long client) throws FaroException;

  /** Returns whether the service holds its end of the connection; {@code false} also for an invalid handle. */
  static native boolean isConnected(long client);

  static native void handOver(long client, int shuffleId, long mapId, String dataPath, String indexPath)
      throws FaroException;

  /** Borrows files for an endpoint; {@code readable} tells of each of {@code maps} whether it can be read so. */
  static native void borrow(long client, long endpoint, int shuffleId, long[] maps, boolean[] readable)
      throws FaroException;

  static native void forget(long client, int shuffleId) throws FaroException;

  static native void host(long client, int replicas, int at, int of, byte[] card) throws FaroException;

  static native long behind(long client) throws FaroException;

  static native void end(long client) throws FaroException;

  /**
   * Tells services what {@link NodeService#tell} says, and returns how many have accepted it. {@code secret} may be
   * {@code null}.
   */
  static native int tell(String application, boolean sealed, byte[] secret, byte[][] cards, int[] removed,
      boolean ended, long timeoutMillis) throws FaroException;

  /** What {@link NodeService#placement} says. */
  static native int[] placement(int[] hosts, int source, int shuffleId, long mapId, int max);

  /** Closes the connection. Does nothing for an invalid handle. */
  static native void close(long client);
}
