package io.faro.service;

import io.faro.FaroException;

/** The JNI boundary of the node service; see native/jni/src/service.rs. */
final class ServiceNative {
  private ServiceNative() {}

  /**
   * Registers an executor; its handle. {@code token}: 32 bytes; {@code secret}: what Spark's authentication shares, or
   * {@code null}. Each message, this one included, may take {@code timeoutMillis}.
   */
  static native long connect(String directory, String application, String executor, boolean sealed, byte[] token,
      byte[] secret, long timeoutMillis) throws FaroException;

  static native byte[] card(long client) throws FaroException;

  /** {@code false} for a handle that is not valid, too. */
  static native boolean isConnected(long client);

  static native void handOver(long client, int shuffleId, long mapId, String dataPath, String indexPath)
      throws FaroException;

  static native void forget(long client, int shuffleId) throws FaroException;

  static native void end(long client) throws FaroException;

  /** Does nothing for a handle that is not valid. */
  static native void close(long client);
}
