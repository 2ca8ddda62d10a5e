package io.faro;

/** Two endpoints in this JVM: an owner that serves, and a reader that fetches from it. */
final class Pair implements AutoCloseable {
  final Endpoint owner;
  final Endpoint reader;
  final long peer;

  Pair(FabricChoice fabric, OutputResolver outputs) throws FaroException {
    owner = Endpoint.start(config("owner", fabric), outputs);
    boolean complete = false;
    Endpoint other = null;
    try {
      other = Endpoint.start(config("reader", fabric), (shuffle, map) -> null);
      peer = other.addPeer(owner.card());
      complete = true;
    } finally {
      if (!complete) {
        owner.close();
        if (other != null) {
          other.close();
        }
      }
    }
    reader = other;
  }

  static EndpointConfig config(String name, FabricChoice fabric) {
    return EndpointConfig.builder().name(name).fabric(fabric).memoryLimitBytes(128L << 20).build();
  }

  Collected fetch(BlockIds ids) throws FaroException {
    Collected collected = new Collected(ids.count());
    reader.fetch(peer, ids, 0, collected);
    return collected;
  }

  @Override
  public void close() {
    reader.close();
    owner.close();
  }
}
