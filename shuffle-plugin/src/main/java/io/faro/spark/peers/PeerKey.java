package io.faro.spark.peers;

/**
 * The peer of a request: executor id, host and port. An executor that replaces another has a new id; with the external
 * shuffle service the port is the service's.
 */
public final class PeerKey {
  public final String executor;
  public final String host;
  public final int port;

  public PeerKey(String executor, String host, int port) {
    this.executor = executor;
    this.host = host;
    this.port = port;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof PeerKey && port == ((PeerKey) other).port
        && executor.equals(((PeerKey) other).executor) && host.equals(((PeerKey) other).host);
  }

  @Override
  public int hashCode() {
    return (executor.hashCode() * 31 + host.hashCode()) * 31 + port;
  }

  @Override
  public String toString() {
    return "executor " + executor + " at " + host + ":" + port;
  }
}
