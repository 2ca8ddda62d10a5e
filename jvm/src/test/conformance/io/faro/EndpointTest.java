package io.faro;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.Collections;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Two endpoints in one JVM serve real files: every fabric must deliver exactly the bytes of the files. */
class EndpointTest {
  @TempDir
  Path directory;

  @BeforeAll
  static void library() throws FaroException {
    Repository.loadNative();
  }

  @ParameterizedTest
  @EnumSource(names = {"TCP", "SHM"})
  void aThousandTinyBlocks(FabricChoice fabric) throws Exception {
    MapOutputs outputs = new MapOutputs(directory);
    for (int map = 0; map < 10; map++) {
      outputs.write(1, map, MapOutputs.lengths(100, 200));
    }
    try (Pair pair = new Pair(fabric, outputs)) {
      BlockIds ids = new BlockIds();
      for (int i = 0; i < 1_000; i++) {
        ids.add(1, i % 10, i / 10, i / 10 + 1);
      }
      CollectedBlocks got = pair.fetch(ids).await();
      assertEquals(Collections.emptyList(), got.errors);
      for (int i = 0; i < 1_000; i++) {
        assertArrayEquals(MapOutputs.partition(i % 10, i / 10, 200), got.bytes(i), "block " + i);
      }
      for (Fabric carried : got.fabrics) {
        assertEquals(fabric.name(), carried.name());
      }
      got.releaseAll();
      assertEquals(0, pair.client.fetchesUnderWay());
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"TCP", "SHM"})
  void emptyAndJoinedPartitions(FabricChoice fabric) throws Exception {
    MapOutputs outputs = new MapOutputs(directory).write(2, 7, 0, 300_000, 0, 5, 0);
    try (Pair pair = new Pair(fabric, outputs)) {
      CollectedBlocks got = pair.fetch(new BlockIds().add(2, 7, 0, 1).add(2, 7, 0, 5).add(2, 7, 3, 4)).await();
      assertEquals(0, got.blocks[0].length());
      assertEquals(-1, got.blocks[0].inputStream().read());
      byte[] joined = Arrays.copyOf(MapOutputs.partition(7, 1, 300_000), 300_005);
      System.arraycopy(MapOutputs.partition(7, 3, 5), 0, joined, 300_000, 5);
      assertArrayEquals(joined, got.bytes(1));
      assertArrayEquals(MapOutputs.partition(7, 3, 5), got.bytes(2));
      got.releaseAll();
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"TCP", "SHM"})
  void aBlockOfManySlices(FabricChoice fabric) throws Exception {
    int size = 20_000_003;
    MapOutputs outputs = new MapOutputs(directory).write(3, 1, 11, size, 13);
    try (Pair pair = new Pair(fabric, outputs)) {
      CollectedBlocks got = pair.fetch(new BlockIds().add(3, 1, 0, 1).add(3, 1, 1, 2).add(3, 1, 2, 3)).await();
      byte[] expected = MapOutputs.partition(1, 1, size);
      assertArrayEquals(expected, got.bytes(1));
      ByteBuffer buffer = got.blocks[1].nioByteBuffer();
      assertEquals(ByteBuffer.wrap(expected), buffer);
      try (InputStream in = got.blocks[1].inputStream()) {
        assertEquals(size - 10, in.skip(size - 10));
        byte[] end = new byte[20];
        assertEquals(10, in.read(end, 0, 20));
        assertArrayEquals(Arrays.copyOfRange(expected, size - 10, size), Arrays.copyOf(end, 10));
      }
      assertArrayEquals(MapOutputs.partition(1, 2, 13), got.bytes(2));
      got.releaseAll();
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"TCP", "SHM"})
  void whatIsNotThereIsToldPerBlock(FabricChoice fabric) throws Exception {
    MapOutputs outputs = new MapOutputs(directory).write(4, 1, 10, 20, 30);
    OutputResolver resolver = (shuffle, map) -> {
      if (map == 666) {
        throw new IllegalArgumentException("resolver");
      }
      return outputs.resolve(shuffle, map);
    };
    try (Pair pair = new Pair(fabric, resolver)) {
      BlockIds ids = new BlockIds()
          .add(4, 1, 0, 1).add(4, 99, 0, 1).add(4, 1, 2, 9).add(4, 666, 0, 1).add(4, 1, 2, 2).add(4, 1, 2, 3);
      CollectedBlocks got = pair.fetch(ids).await();
      assertEquals(Collections.emptyList(), got.errors);
      assertEquals(
          Arrays.asList(
              BlockStatus.OK, BlockStatus.UNKNOWN_OUTPUT, BlockStatus.BAD_RANGE,
              BlockStatus.UNKNOWN_OUTPUT, BlockStatus.BAD_RANGE, BlockStatus.OK),
          Arrays.asList(got.statuses));
      assertArrayEquals(MapOutputs.partition(1, 0, 10), got.bytes(0));
      assertArrayEquals(MapOutputs.partition(1, 2, 30), got.bytes(5));
      assertNull(got.blocks[1]);
      got.releaseAll();
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"TCP", "SHM"})
  void aForgottenShuffleIsAskedForAgain(FabricChoice fabric) throws Exception {
    MapOutputs outputs = new MapOutputs(directory).write(5, 1, 10);
    try (Pair pair = new Pair(fabric, outputs)) {
      pair.fetch(new BlockIds().add(5, 1, 0, 1)).await().releaseAll();
      pair.server.forgetShuffle(5);
      outputs.write(5, 1, 17);
      CollectedBlocks got = pair.fetch(new BlockIds().add(5, 1, 0, 1)).await();
      assertArrayEquals(MapOutputs.partition(1, 0, 17), got.bytes(0));
      got.releaseAll();
    }
  }

  /**
   * Does what Spark does when it removes a shuffle: a peer asks once more after the shuffle was forgotten and before
   * its files are deleted.
   */
  @Test
  void aShuffleThatIsForgottenAfterItsFilesAreDeletedHoldsNoDiskSpace() throws Exception {
    MapOutputs outputs = new MapOutputs(directory).write(9, 1, 10);
    try (Pair pair = new Pair(FabricChoice.TCP, outputs)) {
      pair.fetch(new BlockIds().add(9, 1, 0, 1)).await().releaseAll();
      pair.server.forgetShuffle(9);
      pair.fetch(new BlockIds().add(9, 1, 0, 1)).await().releaseAll();
      OutputFiles files = outputs.resolve(9, 1);
      assertTrue(files.data().delete() && files.index().delete());
      pair.server.forgetShuffle(9);
      assertEquals(0, openFiles(files.data().getName()));
    }
  }

  private static int openFiles(String name) throws IOException {
    int open = 0;
    try (DirectoryStream<Path> descriptors = Files.newDirectoryStream(Paths.get("/proc/self/fd"))) {
      for (Path descriptor : descriptors) {
        try {
          open += Files.readSymbolicLink(descriptor).toString().contains(name) ? 1 : 0;
        } catch (NoSuchFileException e) {
          continue; // The endpoint was closed meanwhile.
        }
      }
    }
    return open;
  }

  /** Pair has three completion threads, and request numbers increase by one. */
  @Test
  void aListenerThatTakesLongHoldsUpNoFetchOfAnotherThread() throws Exception {
    MapOutputs outputs = new MapOutputs(directory).write(8, 1, 10);
    try (Pair pair = new Pair(FabricChoice.TCP, outputs)) {
      CountDownLatch others = new CountDownLatch(2);
      Set<String> threads = ConcurrentHashMap.newKeySet();
      CollectedBlocks slow = new CollectedBlocks(1) {
        @Override
        public synchronized void onBlocks(BlockBatch batch) {
          threads.add(Thread.currentThread().getName());
          try {
            others.await();
          } catch (InterruptedException e) {
            throw new IllegalStateException(e);
          }
          super.onBlocks(batch);
        }
      };
      pair.client.fetch(pair.peer, new BlockIds().add(8, 1, 0, 1), 0, slow);
      for (int i = 0; i < 2; i++) {
        pair.client.fetch(pair.peer, new BlockIds().add(8, 1, 0, 1), 0, new CollectedBlocks(1) {
          @Override
          public synchronized void onBlocks(BlockBatch batch) {
            threads.add(Thread.currentThread().getName());
            others.countDown();
          }
        });
      }
      assertArrayEquals(MapOutputs.partition(1, 0, 10), slow.await().bytes(0));
      assertEquals(3, threads.size(), threads.toString());
      slow.releaseAll();
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"TCP", "SHM"})
  void anOwnerThatIsGoneIsATypedError(FabricChoice fabric) throws Exception {
    MapOutputs outputs = new MapOutputs(directory).write(6, 1, 10);
    try (Pair pair = new Pair(fabric, outputs)) {
      pair.server.close();
      CollectedBlocks got = pair.fetch(new BlockIds().add(6, 1, 0, 1).add(6, 1, 0, 1)).await();
      assertEquals(1, got.errors.size());
      FetchException error = got.errors.get(0);
      assertTrue(
          error.error() == FetchError.UNREACHABLE || error.error() == FetchError.CONNECTION_LOST,
          error.toString());
      assertEquals(2, error.blockCount());
      assertEquals(pair.peer, error.peer());
      assertTrue(pair.client.isBackedOff(pair.peer), "whoever sees the failure sees the back-off");
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"TCP", "SHM"})
  void aBlamedPeerIsBackedOffUntilARequestSucceeds(FabricChoice fabric) throws Exception {
    MapOutputs outputs = new MapOutputs(directory).write(6, 1, 10);
    Endpoint closed;
    try (Pair pair = new Pair(fabric, outputs)) {
      assertFalse(pair.client.isBackedOff(pair.peer));
      pair.client.blame(pair.peer);
      assertTrue(pair.client.isBackedOff(pair.peer));
      assertFalse(pair.client.isBackedOff(pair.peer + 1), "unknown");
      CollectedBlocks got = pair.fetch(new BlockIds().add(6, 1, 0, 1)).await();
      assertArrayEquals(MapOutputs.partition(1, 0, 10), got.bytes(0));
      assertFalse(pair.client.isBackedOff(pair.peer));
      got.releaseAll();
      closed = pair.client;
    }
    closed.blame(1);
    assertFalse(closed.isBackedOff(1), "closed");
  }

  @ParameterizedTest
  @EnumSource(names = {"TCP", "SHM"})
  void countersTellWhatWasMoved(FabricChoice fabric) throws Exception {
    MapOutputs outputs = new MapOutputs(directory).write(7, 1, 1_000);
    try (Pair pair = new Pair(fabric, outputs)) {
      pair.fetch(new BlockIds().add(7, 1, 0, 1)).await().releaseAll();
      String name = "remoteBlocks." + fabric.name().toLowerCase(java.util.Locale.ROOT);
      assertEquals(1, pair.client.counters().get(name), () -> pair.client.counters().toString());
      pair.client.close();
      assertEquals(Collections.emptyMap(), pair.client.counters());
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"TCP", "SHM"})
  void aPeerHasOneHandle(FabricChoice fabric) throws Exception {
    try (Pair pair = new Pair(fabric, new MapOutputs(directory))) {
      assertEquals(pair.peer, pair.client.addPeer(pair.server.card()));
      assertThrows(EndpointException.BadCard.class, () -> pair.client.addPeer(new byte[] {1, 2, 3}));
      assertThrows(EndpointException.BadCard.class, () -> pair.client.addPeer(new byte[0]));
      EndpointException e = assertThrows(
          EndpointException.class,
          () -> pair.client.fetch(987_654, new BlockIds().add(1, 1, 0, 1), 0, new CollectedBlocks(1)));
      assertTrue(e.getMessage().contains("987654"), e.getMessage());
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"TCP", "SHM"})
  void wrongSettingsAreNamed(FabricChoice fabric) throws Exception {
    BadConfigurationException small = assertThrows(
        BadConfigurationException.class,
        () -> Endpoint.start(
            EndpointConfig.builder().fabric(fabric).memoryLimitBytes(4_096).build(), (shuffle, map) -> null));
    assertEquals("spark.faro.memory.limit", small.key());
    assertEquals("4096", small.value());
    BadConfigurationException address = assertThrows(
        BadConfigurationException.class,
        () -> Endpoint.start(
            EndpointConfig.builder().fabric(fabric).bindAddress("no-address").build(), (shuffle, map) -> null));
    assertEquals("spark.faro.bindAddress", address.key());
    assertEquals("no-address", address.value());
    assertEquals("an IPv4 or IPv6 address", address.allowed());
    assertInstanceOf(FaroException.class, address);
  }

  /** If only RDMA is chosen and it cannot be used, the error must say why; with AUTO the other fabrics remain. */
  @Test
  void aDeviceThatDoesNotExist() throws Exception {
    EndpointConfig.Builder config =
        EndpointConfig.builder().set("verbs.device", "no_such_device_0").memoryLimitBytes(64L << 20);
    EndpointException e = assertThrows(
        EndpointException.class,
        () -> Endpoint.start(config.fabric(FabricChoice.VERBS).build(), (shuffle, map) -> null));
    assertTrue(e.getMessage().startsWith("verbs fabric: "), e.getMessage());
    try (Endpoint endpoint = Endpoint.start(config.fabric(FabricChoice.AUTO).build(), (shuffle, map) -> null)) {
      String card = new String(endpoint.card(), java.nio.charset.StandardCharsets.UTF_8);
      assertTrue(card.contains("tcp") && !card.contains("verbs"), card);
    }
  }
}
