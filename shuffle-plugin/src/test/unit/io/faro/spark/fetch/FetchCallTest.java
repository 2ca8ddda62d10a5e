package io.faro.spark.fetch;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.faro.Failures;
import io.faro.FetchError;
import java.util.Collections;
import java.util.HashSet;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** A request never loses a block, delivers it twice, or waits for ever. */
class FetchCallTest {
  private final ClientHarness h = new ClientHarness(false);

  @Test
  void aBlockThatComesTwiceIsDeliveredOnce() {
    FakeTransport.StartedFetch fetch = h.fetchStarted(ClientHarness.blocks(2));
    h.transport.arrive(fetch, 0, 2);
    h.transport.arrive(fetch, 0, 2);
    fetch.listener.onComplete();
    fetch.listener.onComplete();
    assertEquals(2, h.listener.kept.size());
    assertEquals(2, h.counters.lateBlocks.sum());
    assertEquals(0, h.spark.requests);
    h.assertNothingLeaks();
  }

  @Test
  void whatComesAfterTheFallBackIsDropped() {
    FakeTransport.StartedFetch fetch = h.fetchStarted(ClientHarness.blocks(3));
    fetch.listener.onError(0, 3, Failures.of(FetchError.CORRUPT, 0, 3));
    fetch.listener.onComplete();
    h.transport.arrive(fetch, 0, 3);
    fetch.listener.onComplete();
    h.fallBackThreads.runAll();
    assertEquals(Collections.emptySet(), h.listener.kept.keySet());
    assertEquals(ClientHarness.names(0, 1, 2), h.spark.fetched);
    assertEquals(3, h.counters.lateBlocks.sum());
    h.assertNothingLeaks();
  }

  @Test
  void aRequestWithoutProgressIsEndedOnce() {
    FakeTransport.StartedFetch fetch = h.fetchStarted(ClientHarness.blocks(3));
    long longest = TimeUnit.SECONDS.toNanos(10);
    h.steps.pass(9, TimeUnit.SECONDS);
    h.transport.arrive(fetch, 0, 1);
    h.steps.pass(9, TimeUnit.SECONDS);
    h.client.endUnresponsive(longest);
    assertEquals(0, h.fallBackThreads.work.size(), "a block arrived 9 s ago");
    h.steps.pass(1, TimeUnit.SECONDS);
    h.client.endUnresponsive(longest);
    h.client.endUnresponsive(longest);
    h.transport.arrive(fetch, 1, 2);
    fetch.listener.onComplete();
    h.fallBackThreads.runAll();
    assertEquals(ClientHarness.names(1, 2), h.spark.fetched);
    assertEquals(1, h.transport.cancelled);
    assertEquals(1, h.counters.snapshot().get("fallbackReason.unresponsive"));
    h.assertNothingLeaks();
  }

  @Test
  void aRequestThatEndedWhileItWaitedForTheCardIsNotStarted() {
    h.fetch(ClientHarness.blocks(1));
    h.client.endUnresponsive(0);
    h.lookUps.runAll();
    assertEquals(0, h.transport.started.size());
    h.fallBackThreads.runAll();
    assertEquals(ClientHarness.names(0), h.spark.fetched);
    h.assertNothingLeaks();
  }

  @Test
  void aRequestThatIsCompleteWithoutItsBlocksIsNotBelieved() {
    FakeTransport.StartedFetch fetch = h.fetchStarted(ClientHarness.blocks(3));
    h.transport.arrive(fetch, 0, 1);
    fetch.listener.onComplete();
    h.fallBackThreads.runAll();
    assertEquals(ClientHarness.names(1, 2), h.spark.fetched);
    assertEquals(1, h.counters.snapshot().get("fallbackReason.protocol"));
  }

  @Test
  void blocksBeyondTheRequestAreIgnored() {
    FakeTransport.StartedFetch fetch = h.fetchStarted(ClientHarness.blocks(2));
    h.transport.arrive(fetch, 1, 3);
    h.transport.arrive(fetch, -1, 1);
    fetch.listener.onComplete();
    h.fallBackThreads.runAll();
    assertEquals(new HashSet<>(ClientHarness.names(1)), h.listener.kept.keySet());
    assertEquals(ClientHarness.names(0), h.spark.fetched);
    h.assertNothingLeaks();
  }
}
