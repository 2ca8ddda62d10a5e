package io.faro.service;

import io.faro.Faro;
import io.faro.FaroException;
import io.faro.OutputFiles;

/**
 * This executor's connection to the node service of its host. A call waits for the service's answer, up to a timeout;
 * when one fails with {@link ServiceException.Lost}, all later ones do. Thread-safe.
 */
public final class NodeService implements AutoCloseable {
  private final long handle;

  private NodeService(long handle) {
    this.handle = handle;
  }

  /**
   * Registers with the service whose socket is in {@code directory}. {@code token} (32 bytes) proves the application;
   * {@code secret} is Spark's, or {@code null}. Native code keeps no copy of them; the caller overwrites the arrays.
   */
  public static NodeService connect(String directory, String application, String executor, boolean sealed,
      byte[] token, byte[] secret, long timeoutMillis) throws FaroException {
    Faro.ensureAvailability();
    return new NodeService(
        ServiceNative.connect(directory, application, executor, sealed, token, secret, timeoutMillis));
  }

  /** The card of the service's endpoint for this application. */
  public byte[] card() throws FaroException {
    return ServiceNative.card(handle);
  }

  /** Whether the service still holds its end of the connection. Does not wait. */
  public boolean isConnected() {
    return ServiceNative.isConnected(handle);
  }

  /** Hands over a map output that is committed. The service does not have it when this throws. */
  public void handOver(int shuffleId, long mapId, OutputFiles files) throws FaroException {
    ServiceNative.handOver(handle, shuffleId, mapId, files.data().getPath(), files.index().getPath());
  }

  /** A shuffle was removed. */
  public void forget(int shuffleId) throws FaroException {
    ServiceNative.forget(handle, shuffleId);
  }

  /** The application has ended: the service removes all of its outputs on this host. */
  public void end() throws FaroException {
    ServiceNative.end(handle);
  }

  @Override
  public void close() {
    ServiceNative.close(handle);
  }
}
