package io.faro.spark.fetch;

import io.faro.spark.metrics.Reason;
import io.faro.spark.peers.PeerKey;
import io.faro.spark.read.groups.PartClient;
import io.faro.spark.transport.ShuffleIds;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.shuffle.BlockFetchingListener;

/** The parts of one request: Faro delivers them by position, Spark's own fetch by name. */
final class PartListener implements BlockFetchingListener, Receiver {
  private final PeerKey peer;
  private final ShuffleIds ids;
  /** Number of the first part at the listener. */
  private final int first;
  private final PartClient.Listener listener;
  private final FallBack fallBack;
  /** Guarded by this; {@code null} until Spark's own fetch delivers a part. */
  private Map<String, Integer> positions;

  PartListener(PeerKey peer, ShuffleIds ids, int first, PartClient.Listener listener, FallBack fallBack) {
    this.peer = peer;
    this.ids = ids;
    this.first = first;
    this.listener = listener;
    this.fallBack = fallBack;
  }

  String[] names() {
    String[] names = new String[ids.count()];
    for (int i = 0; i < names.length; i++) {
      names[i] = ids.name(i);
    }
    return names;
  }

  @Override
  public void arrived(int at, ManagedBuffer data) {
    listener.arrived(first + at, data);
  }

  @Override
  public void left(String[] blocks, Reason reason, Throwable cause, boolean onTaskThread) {
    fallBack.take(new FallBack.UndeliveredBlocks(peer, blocks, this, null, reason, cause), onTaskThread);
  }

  @Override
  public void abandoned() {}

  @Override
  public void onBlockFetchSuccess(String block, ManagedBuffer data) {
    // The caller releases its own reference.
    data.retain();
    arrived(position(block), data);
  }

  @Override
  public void onBlockFetchFailure(String block, Throwable cause) {
    listener.failed(first + position(block), cause);
  }

  private synchronized int position(String block) {
    if (positions == null) {
      positions = new HashMap<>();
      for (int i = 0; i < ids.count(); i++) {
        positions.put(ids.name(i), i);
      }
    }
    return positions.get(block);
  }
}
