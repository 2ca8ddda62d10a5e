package io.faro.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.Failures;
import java.io.File;
import java.util.Collections;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What becomes of blocks with fallback=never: through Faro or a failure that says all. */
class NeverFallBackTest {
  private final ClientHarness h = new ClientHarness(true);

  private FaroFetchException failure(String block) {
    return assertInstanceOf(FaroFetchException.class, h.listener.failed.get(block));
  }

  @Test
  void whatWasNotDeliveredFailsWithEverythingOneNeedsToKnow() {
    FakeTransport.Started fetch = h.fetchStarted(ClientHarness.blocks(2));
    h.transport.arrive(fetch, 0, 1);
    fetch.sink.onError(1, 1, Failures.of(Failures.UNREACHABLE, 1, 1));
    fetch.sink.onComplete();
    FaroFetchException failure = failure("shuffle_0_1_2");
    assertEquals("3", failure.executor());
    assertEquals("10.0.0.7:7777", failure.hostPort());
    assertEquals("shuffle_0_1_2", failure.block());
    for (String part : new String[] {
        "shuffle_0_1_2", "executor 3", "10.0.0.7:7777", "spark.faro.fabric=auto", "unreachable", "made by a test",
        "spark.faro.fallback=never"}) {
      assertTrue(failure.getMessage().contains(part), failure.getMessage());
    }
    assertEquals(Collections.singleton("shuffle_0_0_2"), h.listener.kept.keySet());
    assertEquals(0, h.spark.requests);
    assertEquals(0, h.counters.fallbacks.sum());
    assertEquals(1, h.counters.failedBlocks.sum());
  }

  @Test
  void aFailedPeerIsAskedAgainAtOnce() {
    for (int i = 0; i < 3; i++) {
      FakeTransport.Started fetch = h.fetchStarted("shuffle_0_" + i + "_2");
      fetch.sink.onError(0, 1, Failures.of(Failures.UNREACHABLE, 0, 1));
      fetch.sink.onComplete();
    }
    assertEquals(3, h.transport.started.size());
  }

  @Test
  void aMissingCardIsAskedForAFewTimes() {
    h.card = null;
    h.fetch(ClientHarness.blocks(1));
    for (int i = 1; i < PeerState.NEVER_LOOK_UPS; i++) {
      h.lookUps.runAll();
      assertEquals(i, h.asked.size());
      h.steps.pass(Peers.NEVER_PAUSE_MILLIS << (i - 1), TimeUnit.MILLISECONDS);
    }
    assertTrue(h.listener.failed.isEmpty());
    h.lookUps.runAll();
    assertTrue(failure("shuffle_0_0_2").getMessage().contains("cardMissing"));
    assertEquals(PeerState.NEVER_LOOK_UPS, h.asked.size());
  }

  @Test
  void aCardThatComesInTimeIsGoodEnough() {
    h.card = null;
    h.fetch(ClientHarness.blocks(1));
    h.lookUps.runAll();
    h.card = new byte[] {'*'};
    h.steps.pass(Peers.NEVER_PAUSE_MILLIS, TimeUnit.MILLISECONDS);
    h.lookUps.runAll();
    assertEquals(1, h.transport.started.size());
    assertTrue(h.listener.failed.isEmpty());
  }

  @Test
  void largeRequestsComeThroughTheArenaIntoFiles(@TempDir File directory) throws Exception {
    FakeFiles files = new FakeFiles();
    files.directory = directory;
    h.fetchTo(files, ClientHarness.blocks(2));
    h.lookUps.runAll();
    h.transport.arrive(h.transport.last(), 0, 2);
    h.transport.last().sink.onComplete();
    assertTrue(h.listener.kept.isEmpty(), "nothing is written on the transport's thread");
    h.fileThreads.runAll();
    assertEquals("block 1", h.listener.content("shuffle_0_1_2"));
    assertEquals(7, files.created.get(1).length());
    assertEquals(0, h.transport.references(), "the arena has its memory back, whatever Spark holds");
  }

  @Test
  void filesOfATaskThatIsOverAreDeleted(@TempDir File directory) {
    FakeFiles files = new FakeFiles();
    files.directory = directory;
    files.taskIsOver = true;
    h.listener.taskIsOver = true;
    h.fetchTo(files, ClientHarness.blocks(1));
    h.lookUps.runAll();
    h.transport.arrive(h.transport.last(), 0, 1);
    h.fileThreads.runAll();
    assertEquals(1, files.created.size());
    assertFalse(files.created.get(0).exists());
    assertEquals(0, h.transport.references());
  }

  @Test
  void aFileThatCannotBeWrittenFailsItsBlockAndReleasesItsMemory(@TempDir File directory) {
    FakeFiles files = new FakeFiles();
    files.directory = new File(directory, "is-not-there");
    h.fetchTo(files, ClientHarness.blocks(1));
    h.lookUps.runAll();
    h.transport.arrive(h.transport.last(), 0, 1);
    h.fileThreads.runAll();
    assertTrue(failure("shuffle_0_0_2").getMessage().contains("spark.network.maxRemoteBlockSizeFetchToMem"));
    assertEquals(0, h.transport.references());
  }

  @Test
  void aBlockForAFileThatComesAfterTheStopFails(@TempDir File directory) {
    FakeFiles files = new FakeFiles();
    files.directory = directory;
    h.fetchTo(files, ClientHarness.blocks(1));
    h.lookUps.runAll();
    h.fileThreads.stopped = true;
    h.transport.arrive(h.transport.last(), 0, 1);
    failure("shuffle_0_0_2");
    assertEquals(0, h.transport.references());
  }
}
