package io.faro.spark.read.places;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.spark.read.places.ReadPlan.Group;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.storage.ShuffleBlockBatchId;
import org.apache.spark.storage.ShuffleBlockId;
import org.junit.jupiter.api.Test;
import scala.Tuple2;
import scala.Tuple3;
import scala.collection.Seq;

/** Each block is read once, by one of three ways, in groups that keep within their limits. */
class ReadPlanTest {
  private static final ReadPlan.Limits USUAL = new ReadPlan.Limits(48L << 20, 200L << 20, Integer.MAX_VALUE);

  private static List<Tuple3<BlockId, Object, Object>> listed(ReadPlan plan) {
    List<Tuple3<BlockId, Object, Object>> all = new ArrayList<>();
    for (Tuple2<BlockManagerId, Seq<Tuple3<BlockId, Object, Object>>> of : plan.fetched) {
      scala.collection.Iterator<Tuple3<BlockId, Object, Object>> blocks = of._2().iterator();
      while (blocks.hasNext()) {
        all.add(blocks.next());
      }
    }
    return all;
  }

  @Test
  void ownBlocksAreNotFetched() {
    ReadPlan plan = new Blocks().of("own", 0, 5, 3, 4, 100).plan(USUAL, false);
    assertEquals(5, plan.own.count());
    assertEquals(0, plan.fetched.size());
    assertEquals(104, plan.own.map(4));
    assertEquals(3, plan.own.start(4));
    assertEquals(4, plan.own.end(4));
  }

  @Test
  void blocksOfThisHostAreReadFromItsFiles() {
    ReadPlan plan = new Blocks().of("near", 0, 5, 3, 5, 100).of("near", 5, 1, 3, 5, 100).plan(USUAL, true);
    assertEquals(0, plan.own.count());
    assertEquals(0, plan.fetched.size());
    assertEquals(6, plan.host.get(Blocks.address("near")).count());
  }

  /** Spark's iterator compares the host's name; all else is about the real address. */
  @Test
  void hiddenBlocksOfThisHostAreFetchedFromAnotherNameOfIt() {
    ReadPlan plan = new Blocks().of("hidden", 0, 5, 3, 5, 100).of("hidden", 5, 1, 3, 5, 100_000).plan(USUAL, true);
    assertEquals(0, plan.host.size());
    assertEquals(1, plan.fetched.size());
    assertEquals("host-hidden.", plan.fetched.get(0)._1().host());
    assertEquals("hidden", plan.fetched.get(0)._1().executorId());
    assertEquals(2, plan.groups.size());
    plan.groups.forEach((name, group) -> {
      assertEquals(Blocks.address("hidden"), group.address);
      assertEquals(Blocks.address("hidden"), plan.stream(name)._1());
    });
  }

  /** Of a map output that is lent all parts are, and no other. */
  @Test
  void lentBlocksAreReadFromFilesAndTheOthersAreFetched() {
    for (boolean merge : new boolean[] {false, true}) {
      ReadPlan plan = new Blocks().of("kept", 0, 5, 3, 5, 100).of("1", 5, 1, 3, 5, 100).plan(USUAL, merge);
      Parts lent = plan.lent.get(Blocks.address("kept"));
      assertEquals(merge ? 3 : 6, lent.count());
      for (int i = 0; i < lent.count(); i++) {
        assertEquals(0, lent.map(i) % 2);
      }
      Parts fetched = plan.groups.values().stream().map(group -> group.parts)
          .filter(parts -> parts.map(0) < 105).findFirst().get();
      assertEquals(merge ? 2 : 4, fetched.count());
      assertEquals(101, fetched.map(0));
      assertEquals(2, plan.fetched.size());
    }
  }

  @Test
  void nothingIsFetchedOfAnExecutorWhoseBlocksAreAllLent() {
    ReadPlan plan = new Blocks().of("kept", 0, 1, 3, 5, 100).plan(USUAL, false);
    assertEquals(2, plan.lent.get(Blocks.address("kept")).count());
    assertEquals(0, plan.fetched.size());
  }

  @Test
  void mapOutputsOfPartsAreListedOnce() {
    Parts parts = new Parts(Blocks.SHUFFLE);
    for (long map : new long[] {4, 4, 7, 7, 7, 9}) {
      parts.add(map, 0, parts.count(), parts.count() + 1, 10, false);
    }
    assertArrayEquals(new long[] {4, 7, 9}, parts.maps(0, 6));
    assertArrayEquals(new long[] {4, 7}, parts.maps(1, 2));
    assertArrayEquals(new long[] {7}, parts.maps(2, 1));
    assertArrayEquals(new long[] {9}, parts.maps(5, 126));
    assertArrayEquals(new long[0], new Parts(Blocks.SHUFFLE).maps(0, 0));
  }

  @Test
  void anotherNameOfAnIpv6Host() {
    BlockManagerId address = BlockManagerId.apply("1", "[fd00::1]", 7337, scala.Option.empty());
    assertEquals("[fd00::1%]", ReadPlan.elsewhere(address).host());
    assertEquals("1", ReadPlan.elsewhere(address).executorId());
    assertEquals(7337, ReadPlan.elsewhere(address).port());
  }

  @Test
  void smallBlocksOfOneExecutorAreOneGroup() {
    ReadPlan plan = new Blocks().of("1", 0, 400, 3, 4, 200).of("2", 400, 400, 3, 4, 200).plan(USUAL, false);
    List<Tuple3<BlockId, Object, Object>> listed = listed(plan);
    assertEquals(2, listed.size());
    for (Tuple3<BlockId, Object, Object> one : listed) {
      assertEquals(80_000L, one._2());
      assertEquals(400, plan.groups.get(one._1().name()).parts.count());
    }
    assertTrue(listed.get(0)._1() instanceof ShuffleBlockBatchId, "no map output's block has this id");
    assertTrue(!listed.get(0)._1().equals(listed.get(1)._1()));
  }

  @Test
  void groupsKeepWithinTheirLimits() {
    for (int parts : new int[] {1, 7, 100_000}) {
      ReadPlan.Limits limits = new ReadPlan.Limits(1 << 20, 300_000, parts);
      ReadPlan plan = new Blocks().of("1", 0, 1000, 0, 1, 1000).of("1", 1000, 10, 0, 1, 70_000).plan(limits, false);
      Set<Long> maps = new HashSet<>();
      for (Tuple3<BlockId, Object, Object> one : listed(plan)) {
        Group group = plan.groups.get(one._1().name());
        assertTrue(group.parts.count() <= Math.min(parts, 300), "parts");
        assertTrue(group.parts.bytes() <= 300_000, "bytes");
        assertEquals(group.parts.bytes(), one._2());
        for (int i = 0; i < group.parts.count(); i++) {
          assertTrue(maps.add(group.parts.map(i)), "once");
        }
      }
      assertEquals(1010, maps.size());
    }
  }

  @Test
  void aLargeBlockKeepsItsName() {
    ReadPlan plan = new Blocks().of("1", 0, 2, 5, 6, 1 << 20).plan(USUAL, false);
    assertEquals(new ShuffleBlockId(Blocks.SHUFFLE, 101, 5), listed(plan).get(1)._1());
    assertEquals(1, listed(plan).get(1)._3());
    ReadPlan merged = new Blocks().of("1", 0, 2, 5, 9, 1 << 20).plan(USUAL, true);
    assertEquals(new ShuffleBlockBatchId(Blocks.SHUFFLE, 101, 5, 9), listed(merged).get(1)._1());
    assertEquals(4L << 20, listed(merged).get(1)._2());
  }

  @Test
  void partitionsOfOneMapOutputAreMergedOnlyIfAsked() {
    Blocks blocks = new Blocks().of("own", 0, 3, 2, 6, 10).of("1", 3, 3, 2, 6, 10);
    ReadPlan merged = blocks.plan(USUAL, true);
    assertEquals(3, merged.own.count());
    assertEquals(6, merged.own.end(2));
    assertEquals(3, merged.groups.values().iterator().next().parts.count());
    ReadPlan apart = blocks.plan(USUAL, false);
    assertEquals(12, apart.own.count());
    assertEquals(12, apart.groups.values().iterator().next().parts.count());
  }

  @Test
  void whatSparkReadsKeepsItsNames() {
    ReadPlan plan = new Blocks().of("stored", 0, 2, 2, 4, 10).plan(USUAL, true);
    assertEquals(0, plan.groups.size());
    BlockId first = listed(plan).get(0)._1();
    assertEquals(new ShuffleBlockBatchId(Blocks.SHUFFLE, 100, 2, 4), first);
    assertEquals(20L, listed(plan).get(0)._2());
    assertEquals(Blocks.address("stored"), plan.stream(first.name())._1());
    assertEquals(100, plan.stream(first.name())._2().map(0));
  }
}
