package io.faro.spark.read;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.storage.ShuffleBlockId;
import scala.Option;
import scala.Tuple2;
import scala.Tuple3;
import scala.collection.JavaConverters;
import scala.collection.Seq;

/** Makes by hand what Spark's map output tracker gives. */
final class Blocks {
  static final int SHUFFLE = 7;

  private final List<Tuple2<BlockManagerId, Seq<Tuple3<BlockId, Object, Object>>>> all = new ArrayList<>();

  static BlockManagerId address(String executor) {
    return BlockManagerId.apply(executor, "host-" + executor, 7337, Option.empty());
  }

  /** Blocks of partitions {@code start} to {@code end} of each map output, of {@code size} bytes each. */
  Blocks of(String executor, int firstMap, int maps, int start, int end, long size) {
    List<Tuple3<BlockId, Object, Object>> blocks = new ArrayList<>();
    for (int map = firstMap; map < firstMap + maps; map++) {
      for (int reduce = start; reduce < end; reduce++) {
        blocks.add(new Tuple3<>(new ShuffleBlockId(SHUFFLE, 100L + map, reduce), size, map));
      }
    }
    all.add(new Tuple2<>(address(executor), JavaConverters.asScalaBuffer(blocks)));
    return this;
  }

  /**
   * Executor {@code own} is this one, {@code near} and {@code hidden} are on this host, {@code stored}
   * is the fall-back storage.
   */
  ReadPlan plan(ReadPlan.Limits limits, boolean merge) {
    ReadPlan.Places places = address -> address.executorId().equals("own") ? ReadPlan.Place.OWN
        : address.executorId().equals("near") ? ReadPlan.Place.HOST
        : address.executorId().equals("hidden") ? ReadPlan.Place.HIDDEN
        : address.executorId().equals("stored") ? ReadPlan.Place.SPARK : ReadPlan.Place.REMOTE;
    return ReadPlan.of(
        SHUFFLE, BlockSizes.of(SHUFFLE, JavaConverters.asScalaIterator(all.iterator()), merge), places, limits);
  }
}
