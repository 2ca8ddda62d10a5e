package io.faro.spark.fetch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.Failures;
import io.faro.FetchError;
import io.faro.spark.peers.PeerState;
import io.faro.spark.peers.Peers;
import java.util.Collections;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** With fallback=never, blocks come through Faro or fail with an error that says all. */
class NeverFallBackTest {
  private final ClientHarness h = new ClientHarness(true);

  private FaroFetchException failure(String block) {
    return assertInstanceOf(FaroFetchException.class, h.listener.failed.get(block));
  }

  @Test
  void whatWasNotDeliveredFailsWithEverythingOneNeedsToKnow() {
    FakeTransport.StartedFetch fetch = h.fetchStarted(ClientHarness.blocks(2));
    h.transport.arrive(fetch, 0, 1);
    fetch.listener.onError(1, 1, Failures.of(FetchError.UNREACHABLE, 1, 1));
    fetch.listener.onComplete();
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
      FakeTransport.StartedFetch fetch = h.fetchStarted("shuffle_0_" + i + "_2");
      fetch.listener.onError(0, 1, Failures.of(FetchError.UNREACHABLE, 0, 1));
      fetch.listener.onComplete();
      h.transport.backedOff.add(fetch.peer);
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
}
