package io.faro.spark;

import io.faro.spark.rows.PartClient;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.shuffle.BlockFetchingListener;

/** The parts of one request, for Spark's own fetch too, which knows blocks by name. */
final class PartListener implements BlockFetchingListener {
  private final ShuffleIds ids;
  /** Of the first part, in the listener's numbers. */
  private final int first;
  private final PartClient.Listener listener;
  /** Guarded by this; {@code null} until Spark's own fetch delivers a part. */
  private Map<String, Integer> positions;

  PartListener(ShuffleIds ids, int first, PartClient.Listener listener) {
    this.ids = ids;
    this.first = first;
    this.listener = listener;
  }

  String[] names() {
    String[] names = new String[ids.count()];
    for (int i = 0; i < names.length; i++) {
      names[i] = ids.name(i);
    }
    return names;
  }

  /** Takes over the reference. */
  void arrived(int at, ManagedBuffer data) {
    listener.arrived(first + at, data);
  }

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
