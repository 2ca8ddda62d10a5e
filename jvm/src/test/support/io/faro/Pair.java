package io.faro;

/** Two endpoints in this JVM: a server, and a client that fetches from it. */
final class Pair implements AutoCloseable {
  final Endpoint server;
  final Endpoint client;
  final long peer;

  Pair(FabricChoice fabric, OutputResolver outputs) throws FaroException {
    server = Endpoint.start(config("server", fabric), outputs);
    boolean complete = false;
    Endpoint other = null;
    try {
      other = Endpoint.start(config("client", fabric), (shuffle, map) -> null);
      peer = other.addPeer(server.card());
      complete = true;
    } finally {
      if (!complete) {
        server.close();
        if (other != null) {
          other.close();
        }
      }
    }
    client = other;
  }

  static EndpointConfig config(String name, FabricChoice fabric) {
    return EndpointConfig.builder().name(name).fabric(fabric).memoryLimitBytes(128L << 20).completionThreads(3).build();
  }

  CollectedBlocks fetch(BlockIds ids) throws FaroException {
    CollectedBlocks collected = new CollectedBlocks(ids.count());
    client.fetch(peer, ids, 0, collected);
    return collected;
  }

  @Override
  public void close() {
    client.close();
    server.close();
  }
}
