package io.faro.service;

import io.faro.Endpoint;
import io.faro.Faro;
import io.faro.FaroException;
import io.faro.OutputFiles;

/**
 * This executor's connection to the node service of its host. A call waits for the service's answer, up to a timeout;
 * after one fails with {@link ServiceException.Lost}, all later ones do. Thread-safe.
 */
public final class NodeService implements AutoCloseable {
  private final long handle;

  private NodeService(long handle) {
    this.handle = handle;
  }

  /**
   * Registers with the service whose socket is in {@code directory}. {@code token} (32 bytes) proves the application;
   * {@code secret} is Spark's, or {@code null}. Native code keeps no copy of them; the caller should overwrite the
   * arrays.
   */
  public static NodeService connect(String directory, String application, String executor, boolean sealed,
      byte[] token, byte[] secret, long timeoutMillis) throws FaroException {
    Faro.ensureAvailability();
    return new NodeService(
        ServiceNative.connect(directory, application, executor, sealed, token, secret, timeoutMillis));
  }

  /** Returns the card of the service's endpoint for this application. */
  public byte[] card() throws FaroException {
    return ServiceNative.card(handle);
  }

  /** Returns whether the service still holds its end of the connection. Does not wait. */
  public boolean isConnected() {
    return ServiceNative.isConnected(handle);
  }

  /** Hands over a map output that is committed. If this throws, the service does not have it. */
  public void handOver(int shuffleId, long mapId, OutputFiles files) throws FaroException {
    ServiceNative.handOver(handle, shuffleId, mapId, files.data().getPath(), files.index().getPath());
  }

  /**
   * Borrows the files of map outputs for {@code endpoint}, which then reads them as those of its own process, and
   * closes them when there are too many, with the shuffle, or with itself. Returns for each map output whether it can
   * be read so. If this throws, outputs that were borrowed before can be.
   */
  public boolean[] borrow(Endpoint endpoint, int shuffleId, long[] mapIds) throws FaroException {
    boolean[] readable = new boolean[mapIds.length];
    ServiceNative.borrow(handle, endpoint.nativeHandle(), shuffleId, mapIds, readable);
    return readable;
  }

  /** Tells the service that a shuffle was removed. */
  public void forget(int shuffleId) throws FaroException {
    ServiceNative.forget(handle, shuffleId);
  }

  /**
   * Tells the service that service {@code at} of the application's {@code of} has that card, and that each output is to
   * have {@code replicas} copies on others.
   */
  public void host(int replicas, int at, int of, byte[] card) throws FaroException {
    ServiceNative.host(handle, replicas, at, of, card);
  }

  /** Returns how many copies of the application's outputs of this host other services do not have yet. */
  public long behind() throws FaroException {
    return ServiceNative.behind(handle);
  }

  /** Tells the service that the application has ended: it removes all of the application's outputs on this host. */
  public void end() throws FaroException {
    ServiceNative.end(handle);
  }

  /**
   * Tells the services with those cards, which may be on any host, that shuffles were removed and whether the
   * application has ended, as executors tell the service of their own host. Returns how many have said within the
   * timeout that they will do it. {@code secret} is Spark's, or {@code null}; native code keeps no copy of it.
   */
  public static int tell(String application, boolean sealed, byte[] secret, byte[][] cards, int[] removed,
      boolean ended, long timeoutMillis) throws FaroException {
    Faro.ensureAvailability();
    return ServiceNative.tell(application, sealed, secret, cards, removed, ended, timeoutMillis);
  }

  /**
   * Returns the places of those of {@code hosts} that have copies of a map output of the service at {@code source}: the
   * first to get one first, at most {@code max}. Native code must be available.
   */
  public static int[] placement(int[] hosts, int source, int shuffleId, long mapId, int max) {
    return ServiceNative.placement(hosts, source, shuffleId, mapId, max);
  }

  /** The most shuffles that one call of {@link #tell} may name. */
  public static final int MAX_SHUFFLES = 1_024;

  @Override
  public void close() {
    ServiceNative.close(handle);
  }
}
