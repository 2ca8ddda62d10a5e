package io.faro.spark.read.places;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.MapOutputTrackerWorker;
import org.apache.spark.SparkConf;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.shuffle.MetadataFetchFailedException;
import org.apache.spark.storage.BlockManagerId;
import org.junit.jupiter.api.Test;

/** Compares what is read from map statuses with Spark's own list. */
class BlockSizesTest {
  private static final int SHUFFLE = 5;
  private static final int MAPS = 40;

  private final MapOutputTrackerWorker tracker = new MapOutputTrackerWorker(new SparkConf(false));
  private final MapStatus[] statuses = new MapStatus[MAPS];

  BlockSizesTest() {
    for (int map = 0; map < MAPS; map++) {
      statuses[map] = status(map, 10);
    }
    tracker.mapStatuses().put(SHUFFLE, statuses);
  }

  /** Sizes of any magnitude; every third block is empty. */
  private static MapStatus status(int map, int partitions) {
    long[] sizes = new long[partitions];
    for (int partition = 0; partition < partitions; partition++) {
      sizes[partition] = (map + partition) % 3 == 0 ? 0 : 1L << (map + partition) % 40;
    }
    return MapStatus.apply(BlockManagerId.apply("" + map % 7, "host", 1, scala.Option.empty()), sizes, 1_000 + map);
  }

  private static Map<String, String> text(Map<BlockManagerId, Parts> blocks) {
    Map<String, String> all = new TreeMap<>();
    blocks.forEach((address, parts) -> {
      StringBuilder text = new StringBuilder();
      for (int i = 0; i < parts.count(); i++) {
        text.append(parts.id(i)).append(' ').append(parts.mapIndex(i)).append(' ').append(parts.size(i)).append('\n');
      }
      all.put(address.toString(), text.toString());
    });
    return all;
  }

  private void assertAsSparkSays(int startMap, int endMap, int start, int end, boolean merge) {
    Map<BlockManagerId, Parts> listed = BlockSizes.of(
        SHUFFLE, tracker.getMapSizesByExecutorId(SHUFFLE, startMap, endMap, start, end), merge);
    Map<BlockManagerId, Parts> read = BlockSizes.of(tracker, SHUFFLE, startMap, endMap, start, end, merge);
    assertEquals(text(new LinkedHashMap<>(listed)), text(read));
  }

  @Test
  void allBlocksOfOnePartition() {
    for (int partition = 0; partition < 10; partition++) {
      assertAsSparkSays(0, Integer.MAX_VALUE, partition, partition + 1, false);
    }
  }

  @Test
  void severalPartitionsOfSomeMapOutputs() {
    assertAsSparkSays(3, 11, 2, 9, false);
    assertAsSparkSays(3, 11, 2, 9, true);
    assertAsSparkSays(0, MAPS, 0, 10, true);
    assertAsSparkSays(7, 7, 0, 10, true);
  }

  @Test
  void manyPartitions() {
    for (int map = 0; map < MAPS; map++) {
      // A status of this many has an average, and sizes of its own for huge blocks only.
      statuses[map] = status(map, 2_500);
    }
    assertAsSparkSays(0, Integer.MAX_VALUE, 2_000, 2_100, true);
  }

  @Test
  void aMissingOutputIsSparksFailure() {
    statuses[9] = null;
    assertThrows(MetadataFetchFailedException.class,
        () -> BlockSizes.of(tracker, SHUFFLE, 0, Integer.MAX_VALUE, 3, 4, false));
  }
}
