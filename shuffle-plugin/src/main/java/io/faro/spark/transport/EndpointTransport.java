package io.faro.spark.transport;

import io.faro.BlockIds;
import io.faro.Endpoint;
import io.faro.FaroException;
import io.faro.FetchHandle;
import io.faro.FetchListener;
import java.net.InetAddress;
import java.util.List;

/** {@link FaroTransport} on a native endpoint: translates the ids of blocks and does nothing else. */
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
  public Fetch fetch(long peer, ShuffleIds ids, FetchListener listener) throws FaroException {
    BlockIds blocks = BlockIds.local();
    for (int i = 0; i < ids.count(); i++) {
      blocks.add(ids.shuffle(i), ids.map(i), ids.start(i), ids.end(i), ids.piece());
    }
    FetchHandle handle = endpoint.fetch(peer, blocks, 0, listener);
    return handle::cancel;
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
