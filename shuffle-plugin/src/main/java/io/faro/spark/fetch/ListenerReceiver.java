package io.faro.spark.fetch;

import io.faro.spark.metrics.Reason;
import io.faro.spark.peers.PeerKey;
import io.faro.spark.transport.ShuffleIds;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.shuffle.BlockFetchingListener;

/** Hands blocks to a listener of Spark's, in memory; what Faro does not deliver comes by the fall-back. */
final class ListenerReceiver implements Receiver {
  private final PeerKey peer;
  private final ShuffleIds ids;
  private final BlockFetchingListener listener;
  private final FallBack fallBack;

  ListenerReceiver(PeerKey peer, ShuffleIds ids, BlockFetchingListener listener, FallBack fallBack) {
    this.peer = peer;
    this.ids = ids;
    this.listener = listener;
    this.fallBack = fallBack;
  }

  @Override
  public void arrived(int at, ManagedBuffer data) {
    fallBack.give(listener, ids.name(at), data);
  }

  @Override
  public void left(String[] blocks, Reason reason, Throwable cause, boolean onTaskThread) {
    fallBack.take(new FallBack.UndeliveredBlocks(peer, blocks, listener, null, reason, cause), onTaskThread);
  }

  @Override
  public void abandoned() {}
}
