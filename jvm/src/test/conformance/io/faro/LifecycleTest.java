package io.faro;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Close, cancel and deadlines in the middle of fetches. */
class LifecycleTest {
  private static final int STUCK_MAP = 13;

  @TempDir
  Path directory;

  /** Opens when the resolver may answer for {@link #STUCK_MAP}. */
  private final CountDownLatch unstuck = new CountDownLatch(1);
  /** Opens when a peer has asked for {@link #STUCK_MAP}. */
  private final CountDownLatch asked = new CountDownLatch(1);

  private Pair pair;

  @BeforeAll
  static void library() throws FaroException {
    Repository.loadNative();
  }

  @BeforeEach
  void start() throws Exception {
    MapOutputs outputs = new MapOutputs(directory).write(1, 1, 1_000).write(1, STUCK_MAP, 1_000);
    pair = new Pair(FabricChoice.TCP, (shuffle, map) -> {
      if (map == STUCK_MAP) {
        asked.countDown();
        unstuck.await();
      }
      return outputs.resolve(shuffle, map);
    });
  }

  @AfterEach
  void stop() {
    unstuck.countDown();
    pair.close();
  }

  private CollectedBlocks stuckFetch(long timeoutMillis) throws Exception {
    CollectedBlocks got = new CollectedBlocks(1);
    pair.client.fetch(pair.peer, new BlockIds().add(1, STUCK_MAP, 0, 1), timeoutMillis, got);
    asked.await();
    return got;
  }

  @Test
  void closeEndsFetchesAndLeavesTakenBlocksReadable() throws Exception {
    CollectedBlocks taken = pair.fetch(new BlockIds().add(1, 1, 0, 1)).await();
    CollectedBlocks stuck = stuckFetch(0);
    pair.client.close();
    pair.client.close();
    stuck.await();
    assertEquals(FetchError.CLOSING, stuck.errors.get(0).error());
    assertEquals(0, pair.client.fetchesUnderWay());
    assertArrayEquals(MapOutputs.partition(1, 0, 1_000), taken.bytes(0));
    taken.releaseAll();
    assertThrows(IllegalStateException.class, () -> taken.bytes(0));
    assertThrows(IllegalStateException.class, taken::releaseAll);
  }

  @Test
  void nothingWorksAfterClose() throws Exception {
    pair.client.close();
    BlockIds ids = new BlockIds().add(1, 1, 0, 1);
    assertThrows(EndpointException.Closed.class, () -> pair.fetch(ids));
    assertThrows(EndpointException.Closed.class, () -> pair.client.card());
    assertThrows(EndpointException.Closed.class, () -> pair.client.addPeer(pair.server.card()));
    pair.client.forgetShuffle(1);
    assertTrue(pair.client.counters().isEmpty());
  }

  @Test
  void aCancelledFetchSaysSo() throws Exception {
    CollectedBlocks got = new CollectedBlocks(1);
    FetchHandle handle = pair.client.fetch(pair.peer, new BlockIds().add(1, STUCK_MAP, 0, 1), 0, got);
    asked.await();
    assertFalse(handle.isDone());
    handle.cancel();
    handle.cancel();
    got.await();
    assertEquals(FetchError.CANCELLED, got.errors.get(0).error());
    assertTrue(handle.isDone());
    handle.cancel();
  }

  @Test
  void aDeadlinePassesAndOthersGoOn() throws Exception {
    CollectedBlocks got = stuckFetch(300).await();
    assertEquals(FetchError.TIMED_OUT, got.errors.get(0).error());
    unstuck.countDown();
    pair.fetch(new BlockIds().add(1, 1, 0, 1)).await().releaseAll();
  }

  @Test
  void anEndpointMayBeClosedByItsListener() throws Exception {
    CountDownLatch closed = new CountDownLatch(1);
    pair.client.fetch(pair.peer, new BlockIds().add(1, 1, 0, 1), 0, new FetchListener() {
      @Override
      public void onBlocks(BlockBatch batch) {
        pair.client.close();
        closed.countDown();
      }

      @Override
      public void onError(int firstBlock, int blockCount, FetchException error) {
        closed.countDown();
      }

      @Override
      public void onComplete() {}
    });
    closed.await();
    assertEquals(0, pair.client.fetchesUnderWay());
  }

  @Test
  void wrongArgumentsAreRefusedBeforeAnythingStarts() {
    assertThrows(IllegalArgumentException.class, () -> pair.fetch(new BlockIds()));
    BlockIds tooMany = new BlockIds();
    for (int i = 0; i <= BlockIds.MAX_BLOCKS; i++) {
      tooMany.add(1, i, 0, 1);
    }
    assertThrows(IllegalArgumentException.class, () -> pair.fetch(tooMany));
    assertThrows(
        IllegalArgumentException.class,
        () -> pair.client.fetch(pair.peer, new BlockIds().add(1, 1, 0, 1), -1, new CollectedBlocks(1)));
    assertThrows(
        NullPointerException.class,
        () -> pair.client.fetch(pair.peer, new BlockIds().add(1, 1, 0, 1), 0, null));
  }
}
