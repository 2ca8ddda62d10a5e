package io.faro.spark.fetch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.Failures;
import io.faro.FaroException;
import io.faro.FetchError;
import io.faro.spark.peers.PeerState;
import io.faro.spark.peers.Peers;
import java.io.IOException;
import java.util.Collections;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Look-ups, requests that wait for them, and back-off of peers, with fallback=auto. */
class PeersTest {
  private final ClientHarness h = new ClientHarness(false);

  private int next;

  private String block() {
    return "shuffle_0_" + next++ + "_2";
  }

  private void fail(FakeTransport.StartedFetch fetch) {
    fetch.listener.onError(0, 1, Failures.of(FetchError.CONNECTION_LOST, 0, 1));
    fetch.listener.onComplete();
    h.fallBackThreads.runAll();
  }

  /** The endpoint begins or ends its back-off from the peer of all tests. */
  private void backOff(boolean begins) {
    if (begins) {
      h.transport.backedOff.add((long) '*');
    } else {
      h.transport.backedOff.clear();
    }
  }

  private void pass(long nanos) {
    h.steps.pass(nanos, TimeUnit.NANOSECONDS);
  }

  @Test
  void requestsWaitForTheCardAndOneLookUpServesThemAll() {
    h.fetch(block());
    h.fetch(block());
    assertEquals(0, h.transport.started.size());
    assertEquals(1, h.lookUps.work.size());
    h.lookUps.runAll();
    assertEquals(2, h.transport.started.size());
    h.fetch(block());
    assertEquals(3, h.transport.started.size());
    assertEquals(Collections.singletonList(ClientHarness.PEER), h.asked);
  }

  @Test
  void withoutACardItIsSparksFetchAndNoLookUpForAWhile() {
    h.card = null;
    h.fetch(block());
    h.lookUps.runAll();
    assertEquals(0, h.spark.requests, "a look-up's thread is not for fetching");
    h.fallBackThreads.runAll();
    assertEquals(1, h.spark.requests);
    h.fetch(block());
    assertEquals(2, h.spark.requests, "on the task's own thread now");
    assertEquals(1, h.asked.size());

    pass(PeerState.ABSENT_NANOS - 1);
    h.fetch(block());
    assertEquals(0, h.lookUps.work.size());
    pass(1);
    h.card = new byte[] {'*'};
    h.fetch(block());
    h.lookUps.runAll();
    assertEquals(1, h.transport.started.size());
    assertEquals(3, h.counters.snapshot().get("fallbackReason.cardMissing"));
  }

  @Test
  void aMissingCardIsAskedForLessAndLessOften() {
    h.lookUpFails = new IOException("connection refused");
    long pause = PeerState.ABSENT_NANOS;
    for (int i = 1; i <= 6; i++) {
      h.fetch(block());
      h.lookUps.runAll();
      assertEquals(i, h.asked.size());
      pass(pause - 1);
      h.fetch(block());
      assertEquals(0, h.lookUps.work.size());
      pass(1);
      pause = Math.min(2 * pause, PeerState.ABSENT_MAX_NANOS);
    }
    assertEquals(1, h.said.stream().filter(line -> line.contains("connection refused")).limit(1).count());
  }

  @Test
  void aSlowLookUpDelaysOnlyTheFirstRequests() {
    h.fetch(block());
    h.steps.pass(ClientHarness.WAIT_MILLIS - 1, TimeUnit.MILLISECONDS);
    assertEquals(0, h.fallBackThreads.work.size());
    h.steps.pass(1, TimeUnit.MILLISECONDS);
    h.fallBackThreads.runAll();
    assertEquals(1, h.spark.requests);
    h.fetch(block());
    assertEquals(2, h.spark.requests, "it is known to be slow: no wait");
    assertEquals(1, h.lookUps.work.size());

    h.lookUps.runAll();
    assertEquals(0, h.transport.started.size(), "blocks that Spark has fetched are not fetched again");
    h.fetch(block());
    assertEquals(1, h.transport.started.size());
    assertEquals(2, h.counters.snapshot().get("fallbackReason.cardTimeout"));
  }

  @Test
  void aPeerThatTheEndpointBacksOffFromIsNotAsked() {
    fail(h.fetchStarted(block()));
    backOff(true);
    h.fetch(block());
    assertEquals(1, h.transport.started.size());
    assertEquals(2, h.spark.requests, "on the task's own thread");
    assertEquals(1, h.counters.snapshot().get("fallbackReason.peerBackoff"));
    backOff(false);
    h.fetch(block());
    assertEquals(2, h.transport.started.size());
    assertEquals(1, h.asked.size(), "its card is still good");
    assertEquals(1, h.said.size(), "the back-off is not logged");
  }

  @Test
  void aFailureDoesNotStopTheNextRequestIfTheEndpointDoesNotBackOff() {
    fail(h.fetchStarted(block()));
    h.fetch(block());
    assertEquals(2, h.transport.started.size());
    assertTrue(h.transport.blamed.isEmpty(), "the endpoint saw the failure itself");
  }

  @Test
  void peersBackOffOneByOne() {
    fail(h.fetchStarted(block()));
    backOff(true);
    h.card = new byte[] {'+'};
    h.client.fetchBlocks(ClientHarness.HOST, ClientHarness.PORT, "4", new String[] {block()}, h.listener, null);
    h.lookUps.runAll();
    assertEquals(2, h.transport.started.size());
    assertEquals('+', h.transport.last().peer);
    h.client.fetchBlocks(ClientHarness.HOST, 8888, "3", new String[] {block()}, h.listener, null);
    h.lookUps.runAll();
    assertEquals(3, h.transport.started.size());
    assertEquals(3, h.asked.size());
  }

  @Test
  void aCardThatCannotBeReadIsAMissingCard() {
    h.card = new byte[0];
    h.fetch(block());
    h.lookUps.runAll();
    h.fallBackThreads.runAll();
    assertEquals(1, h.spark.requests);
  }

  @Test
  void anExecutorThatEndedIsAskedForOnceAndQuietly() {
    h.gone = true;
    h.fetch(block());
    h.lookUps.runAll();
    for (int i = 0; i < 3; i++) {
      h.fetch(block());
      pass(PeerState.ABSENT_MAX_NANOS);
    }
    h.fallBackThreads.runAll();
    assertEquals(4, h.spark.requests);
    assertEquals(1, h.asked.size());
    assertEquals(4, h.counters.snapshot().get("fallbackReason.executorGone"));
    assertTrue(h.said.isEmpty(), h.said.toString());
  }

  @Test
  void anExecutorThatEndsWhileItIsReadFromIsAskedForOnceMore() {
    h.driverKnows = true;
    fail(h.fetchStarted(block()));
    h.gone = true;
    for (int i = 0; i < 3; i++) {
      h.fetch(block());
      h.lookUps.runAll();
      h.fallBackThreads.runAll();
      pass(PeerState.ABSENT_MAX_NANOS);
    }
    assertEquals(2, h.asked.size());
    assertEquals(1, h.transport.started.size());
    assertEquals(4, h.spark.requests);
    assertEquals(1, h.said.size(), "the connection that broke, and nothing else");
  }

  @Test
  void aDoubtedExecutorIsLookedUpWhenItsBackOffIsOver() {
    h.driverKnows = true;
    fail(h.fetchStarted(block()));
    backOff(true);
    h.fetchStarted(block());
    assertEquals(1, h.asked.size(), "is in back-off");
    assertEquals(1, h.transport.started.size());
    backOff(false);
    h.fetchStarted(block());
    assertEquals(2, h.asked.size());
    assertEquals(2, h.transport.started.size());
    h.fetchStarted(block());
    assertEquals(2, h.asked.size(), "it is alive");
    assertEquals(3, h.transport.started.size());
  }

  @Test
  void aSuccessEndsTheDoubt() {
    h.driverKnows = true;
    FakeTransport.StartedFetch first = h.fetchStarted(block());
    FakeTransport.StartedFetch second = h.fetchStarted(block());
    fail(first);
    h.transport.arrive(second, 0, 1);
    second.listener.onComplete();
    h.fetchStarted(block());
    assertEquals(1, h.asked.size());
    assertEquals(3, h.transport.started.size());
  }

  @Test
  void aFaultThatOnlyThisSideSeesIsToldToTheEndpoint() {
    FakeTransport.StartedFetch lost = h.fetchStarted(block());
    lost.listener.onComplete();
    assertEquals(Collections.singletonList((long) '*'), h.transport.blamed, "a block without an answer");
    h.fetch(block());
    h.steps.pass(2, TimeUnit.SECONDS);
    h.client.endUnresponsive(TimeUnit.SECONDS.toNanos(1));
    assertEquals(2, h.transport.blamed.size(), "no answer at all");
    h.transport.refuse = new FaroException("made by a test");
    h.fetch(block());
    assertEquals(3, h.transport.blamed.size(), "a fetch that could not begin");
    h.transport.refuse = null;
    FakeTransport.StartedFetch refused = h.fetchStarted(block());
    h.transport.arrive(refused, 0, 1, 0);
    refused.listener.onComplete();
    assertEquals(3, h.transport.blamed.size(), "the peer lacks the block");
  }

  @Test
  void aPeerWithoutRequestsIsForgotten() {
    h.fetchStarted(block());
    pass(Peers.FORGET_NANOS - 1);
    h.peers.forgetIdle();
    assertEquals(1, h.peers.size());
    pass(1);
    h.peers.forgetIdle();
    assertEquals(0, h.peers.size());
    h.fetchStarted(block());
    assertEquals(2, h.asked.size(), "is looked up again");
    assertEquals(2, h.transport.started.size());
  }

  @Test
  void aPeerThatIsLookedUpIsNotForgotten() {
    h.fetch(block());
    pass(Peers.FORGET_NANOS);
    h.peers.forgetIdle();
    assertEquals(1, h.peers.size());
  }

  @Test
  void afterTheStopNoRequestWaitsForALookUp() {
    h.lookUps.stopped = true;
    h.fetch(block());
    h.fallBackThreads.runAll();
    assertEquals(1, h.spark.requests);
    assertTrue(h.asked.isEmpty());
  }
}
