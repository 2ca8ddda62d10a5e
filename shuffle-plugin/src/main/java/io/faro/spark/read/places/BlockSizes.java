package io.faro.spark.read.places;

import io.faro.Nullable;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.MapOutputTracker;
import org.apache.spark.MapOutputTrackerWorker;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.storage.ShuffleBlockId;
import scala.Option;
import scala.Tuple2;
import scala.Tuple3;
import scala.collection.Iterator;
import scala.collection.Seq;

/**
 * The blocks of a read by executor, from the map output tracker. Spark's own list has three objects for each block, and
 * takes longer than the fetch of a small one; the tracker's map statuses, once they are here, are read directly.
 */
public final class BlockSizes {
  private final int shuffle;
  private final boolean merge;
  private final Map<BlockManagerId, Parts> byAddress = new LinkedHashMap<>();

  private BlockSizes(int shuffle, boolean merge) {
    this.shuffle = shuffle;
    this.merge = merge;
  }

  /**
   * Parts of map outputs {@code [startMap, endMap)} and partitions {@code [start, end)}; {@code merge}: the partitions
   * of a map output are one part.
   */
  public static Map<BlockManagerId, Parts> of(MapOutputTracker tracker, int shuffle, int startMap, int endMap,
      int start, int end, boolean merge) {
    BlockSizes sizes = new BlockSizes(shuffle, merge);
    MapStatus[] statuses = known(tracker, shuffle, startMap, endMap);
    if (statuses != null) {
      sizes.add(statuses, startMap, endMap, start, end);
    } else {
      sizes.add(tracker.getMapSizesByExecutorId(shuffle, startMap, endMap, start, end));
    }
    return sizes.byAddress;
  }

  /** Groups the blocks of Spark's list by address. */
  static Map<BlockManagerId, Parts> of(int shuffle,
      Iterator<Tuple2<BlockManagerId, Seq<Tuple3<BlockId, Object, Object>>>> list, boolean merge) {
    BlockSizes sizes = new BlockSizes(shuffle, merge);
    sizes.add(list);
    return sizes.byAddress;
  }

  /** The executors that have the map outputs, as far as the tracker knows without asking the driver. */
  public static Set<BlockManagerId> locations(MapOutputTracker tracker, int shuffle, int startMap, int endMap) {
    Set<BlockManagerId> found = new HashSet<>();
    MapStatus[] statuses = known(tracker, shuffle, startMap, endMap);
    for (int map = startMap; statuses != null && map < Math.min(endMap, statuses.length); map++) {
      found.add(statuses[map].location());
    }
    return found;
  }

  /** Null if the tracker must ask the driver, or there is an output missing, for which it has an exception. */
  @Nullable private static MapStatus[] known(MapOutputTracker tracker, int shuffle, int startMap, int endMap) {
    if (!(tracker instanceof MapOutputTrackerWorker)) {
      return null;
    }
    Option<MapStatus[]> found = ((MapOutputTrackerWorker) tracker).mapStatuses().get(shuffle);
    MapStatus[] statuses = found.isDefined() ? found.get() : null;
    if (statuses == null || startMap < 0 || startMap > statuses.length) {
      return null;
    }
    for (int map = startMap; map < Math.min(endMap, statuses.length); map++) {
      if (statuses[map] == null) {
        return null;
      }
    }
    return statuses;
  }

  private void add(MapStatus[] statuses, int startMap, int endMap, int start, int end) {
    BlockManagerId address = null;
    Parts parts = null;
    for (int map = startMap; map < Math.min(endMap, statuses.length); map++) {
      MapStatus status = statuses[map];
      for (int partition = start; partition < end; partition++) {
        long size = status.getSizeForBlock(partition);
        if (size == 0) {
          continue;
        }
        if (parts == null || !status.location().equals(address)) {
          address = status.location();
          parts = at(address);
        }
        parts.add(status.mapId(), map, partition, partition + 1, size, merge);
      }
    }
  }

  private void add(Iterator<Tuple2<BlockManagerId, Seq<Tuple3<BlockId, Object, Object>>>> list) {
    while (list.hasNext()) {
      Tuple2<BlockManagerId, Seq<Tuple3<BlockId, Object, Object>>> of = list.next();
      Parts parts = at(of._1());
      Iterator<Tuple3<BlockId, Object, Object>> blocks = of._2().iterator();
      while (blocks.hasNext()) {
        Tuple3<BlockId, Object, Object> block = blocks.next();
        ShuffleBlockId id = (ShuffleBlockId) block._1();
        int partition = id.reduceId();
        parts.add(id.mapId(), (Integer) block._3(), partition, partition + 1, (Long) block._2(), merge);
      }
    }
  }

  private Parts at(BlockManagerId address) {
    return byAddress.computeIfAbsent(address, key -> new Parts(shuffle));
  }
}
