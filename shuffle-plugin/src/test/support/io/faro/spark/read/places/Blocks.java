package io.faro.spark.read.places;

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
public final class Blocks {
  public static final int SHUFFLE = 7;

  private final List<Tuple2<BlockManagerId, Seq<Tuple3<BlockId, Object, Object>>>> all = new ArrayList<>();

  public static BlockManagerId address(String executor) {
    return BlockManagerId.apply(executor, "host-" + executor, 7337, Option.empty());
  }

  /** Blocks of partitions {@code start} to {@code end} of each map output, of {@code size} bytes each. */
  public Blocks of(String executor, int firstMap, int maps, int start, int end, long size) {
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
   * is the fall-back storage. The node service of this host has the outputs of {@code kept} and lends those with an
   * even map id.
   */
  public ReadPlan plan(ReadPlan.Limits limits, boolean merge) {
    ReadPlan.Places places = new ReadPlan.Places() {
      @Override
      public ReadPlan.Place of(BlockManagerId address) {
        return address.executorId().equals("own") ? ReadPlan.Place.OWN
            : address.executorId().equals("near") ? ReadPlan.Place.HOST
            : address.executorId().equals("hidden") ? ReadPlan.Place.HIDDEN
            : address.executorId().equals("stored") ? ReadPlan.Place.SPARK : ReadPlan.Place.REMOTE;
      }

      @Override
      public boolean[] lent(BlockManagerId address, Parts parts) {
        if (!address.executorId().equals("kept")) {
          return null;
        }
        long[] maps = parts.maps(0, parts.count());
        boolean[] lent = new boolean[maps.length];
        for (int i = 0; i < maps.length; i++) {
          lent[i] = maps[i] % 2 == 0;
        }
        return lent;
      }
    };
    return ReadPlan.of(
        SHUFFLE, BlockSizes.of(SHUFFLE, JavaConverters.asScalaIterator(all.iterator()), merge), places, limits);
  }
}
