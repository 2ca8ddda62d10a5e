package io.faro.spark.transport;

import io.faro.BlockIds;
import io.faro.Endpoint;
import io.faro.FaroException;
import io.faro.FetchListener;
import java.net.InetAddress;
import java.util.List;

/** {@link FaroTransport} on a native endpoint: does nothing of its own. */
public final class EndpointTransport implements FaroTransport {
  private final Endpoint endpoint;

  public EndpointTransport(Endpoint endpoint) {
    this.endpoint = endpoint;
  }

  @Override
  public int maxBlocks() {
    return BlockIds.MAX_BLOCKS;
  }

  @Override
  public long addPeer(byte[] card, List<InetAddress> knownAt) throws FaroException {
    return endpoint.addPeer(card, knownAt);
  }

  @Override
  public Fetch fetch(long peer, BlockIds ids, FetchListener listener, boolean verifies) throws FaroException {
    return endpoint.fetch(peer, ids, 0, listener, verifies)::cancel;
  }

  @Override
  public boolean isBackedOff(long peer) {
    return endpoint.isBackedOff(peer);
  }

  @Override
  public void blame(long peer) {
    endpoint.blame(peer);
  }
}
