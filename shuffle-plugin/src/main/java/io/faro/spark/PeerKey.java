package io.faro.spark;

/**
 * The peer of a request: executor id, host and port. An executor that replaces another has a new id; with the external
 * shuffle service the port is the service's.
 */
final class PeerKey {
  final String executor;
  final String host;
  final int port;

  PeerKey(String executor, String host, int port) {
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
