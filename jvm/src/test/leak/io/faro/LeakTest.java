package io.faro;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Random;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests that everything taken is returned: arena bytes, fetches, threads. */
class LeakTest {
  private static final int CYCLES = 10_000;
  private static final int IN_FLIGHT = 16;
  private static final int BLOCKS = 5;

  @TempDir
  Path directory;

  @BeforeAll
  static void library() throws FaroException {
    Repository.loadNative();
  }

  private static long leased(Endpoint endpoint) {
    return endpoint.counters().get("pool.leasedBytes");
  }

  @ParameterizedTest
  @EnumSource(names = {"TCP", "SHM"})
  void tenThousandCyclesLeaveNothing(FabricChoice fabric) throws Exception {
    MapOutputs outputs = new MapOutputs(directory);
    int[] lengths = {0, 1, 200, 5_000, 70_000};
    for (int map = 0; map < 4; map++) {
      outputs.write(1, map, lengths);
    }
    try (Pair pair = new Pair(fabric, outputs)) {
      pair.fetch(new BlockIds().add(1, 0, 2, 3)).await().releaseAll();
      final long atRest = leased(pair.client);
      Random random = new Random(1);
      Deque<CollectedBlocks> flying = new ArrayDeque<>();
      for (int cycle = 0; cycle < CYCLES; cycle++) {
        BlockIds ids = new BlockIds();
        for (int i = 0; i < BLOCKS; i++) {
          int reduce = random.nextInt(lengths.length);
          ids.add(1, random.nextInt(5), reduce, reduce + 1);
        }
        flying.add(pair.fetch(ids));
        if (flying.size() == IN_FLIGHT) {
          end(flying.remove());
        }
      }
      while (!flying.isEmpty()) {
        end(flying.remove());
      }
      assertEquals(0, pair.client.fetchesUnderWay());
      assertEquals(atRest, leased(pair.client), () -> pair.client.counters().toString());
      assertTrue(Slabs.referenced() <= 64, "slab references: " + Slabs.referenced());
    }
  }

  private static void end(CollectedBlocks got) throws Exception {
    got.await();
    assertTrue(got.errors.isEmpty(), () -> got.errors.toString());
    for (int i = 0; i < BLOCKS; i++) {
      if (got.blocks[i] != null) {
        assertEquals(got.blocks[i].length(), got.bytes(i).length);
      } else {
        assertEquals(BlockStatus.UNKNOWN_OUTPUT, got.statuses[i]);
      }
    }
    got.releaseAll();
  }

  @ParameterizedTest
  @EnumSource(names = {"TCP", "SHM"})
  void endpointsComeAndGo(FabricChoice fabric) throws Exception {
    MapOutputs outputs = new MapOutputs(directory).write(1, 1, 100_000);
    CollectedBlocks kept = null;
    for (int i = 0; i < 10; i++) {
      try (Pair pair = new Pair(fabric, outputs)) {
        CollectedBlocks got = pair.fetch(new BlockIds().add(1, 1, 0, 1)).await();
        if (kept != null) {
          assertArrayEquals(MapOutputs.partition(1, 0, 100_000), kept.bytes(0));
          kept.releaseAll();
        }
        kept = got;
      }
    }
    kept.releaseAll();
    for (Thread thread : Thread.getAllStackTraces().keySet()) {
      String name = thread.getName();
      assertTrue(!name.startsWith("faro-completions") && !name.equals("faro-resolver"), name + " is left");
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"TCP", "SHM"})
  void unreachableSlabsAreReleased(FabricChoice fabric) throws Exception {
    ByteBuffer[] view = {viewThatOutlivesItsEndpoint(fabric)};
    collect(1);
    assertTrue(Slabs.referenced() >= 1, "the view's slab is kept");
    view[0].get(new byte[view[0].remaining()]);
    view[0] = null;
    collect(0);
    assertEquals(0, Slabs.referenced());
  }

  private ByteBuffer viewThatOutlivesItsEndpoint(FabricChoice fabric) throws Exception {
    // The block lies in one slice, so that the buffer is a view of the slab and not a copy.
    MapOutputs outputs = new MapOutputs(directory).write(1, 1, 60_000);
    try (Pair pair = new Pair(fabric, outputs)) {
      CollectedBlocks got = pair.fetch(new BlockIds().add(1, 1, 0, 1)).await();
      ByteBuffer view = got.blocks[0].nioByteBuffer();
      got.releaseAll();
      return view;
    }
  }

  /**
   * Collects garbage until at most {@code slabs} slabs are left. It asks at most 200 times, because the JVM decides
   * whether it collects.
   */
  private static void collect(int slabs) {
    for (int i = 0; i < 200 && Slabs.referenced() > slabs; i++) {
      System.gc();
      Slabs.releaseUnreachable();
    }
  }
}
