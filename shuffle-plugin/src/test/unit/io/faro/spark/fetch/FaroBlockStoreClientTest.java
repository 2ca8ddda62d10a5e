package io.faro.spark.fetch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.BlockIds;
import io.faro.EndpointException;
import io.faro.Failures;
import io.faro.FetchError;
import io.faro.spark.conf.FaroConf;
import io.faro.spark.metrics.Reason;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Deliveries, failures and the fall-back, with fallback=auto. */
class FaroBlockStoreClientTest {
  private final ClientHarness h = new ClientHarness(false);

  @Test
  void deliversEveryBlockOnceAndKeepsNoReference() throws Exception {
    FakeTransport.StartedFetch fetch = h.fetchStarted(ClientHarness.blocks(5));
    h.transport.arrive(fetch, 0, 2);
    h.transport.arrive(fetch, 2, 3);
    fetch.listener.onComplete();
    assertEquals(new HashSet<>(ClientHarness.names(0, 1, 2, 3, 4)), h.listener.kept.keySet());
    assertEquals("block 3", h.listener.content("shuffle_0_3_2"));
    assertEquals(5, h.transport.references());
    assertEquals(0, h.spark.requests);
    h.assertNothingLeaks();
  }

  @Test
  void oneFetchForTheWholeList() {
    h.fetchStarted("shuffle_4_9_1", "shuffle_4_10_1_7");
    assertEquals(1, h.transport.started.size());
    BlockIds ids = h.transport.last().ids;
    assertEquals(2, ids.count());
    assertEquals(10, ids.map(1));
    assertEquals(7, ids.end(1));
    assertEquals('*', h.transport.last().peer);
  }

  /** With spark.faro.enabled=false in its session: Spark's client gets the request as it is, and nothing is counted. */
  @Test
  void aShuffleThatIsSparksAloneIsFetchedBySpark() {
    h.left.add(4);
    h.fetch("shuffle_4_9_1", "shuffle_4_10_1_7");
    assertEquals(Arrays.asList("shuffle_4_9_1", "shuffle_4_10_1_7"), h.spark.fetched);
    assertEquals(0, h.transport.started.size());
    assertEquals(new ClientHarness(false).counters.snapshot(), h.counters.snapshot());
    h.fetchStarted("shuffle_5_9_1");
    assertEquals(1, h.transport.started.size());
  }

  @Test
  void aListThatIsTooLongIsSplit() {
    h.transport.maxBlocks = 4;
    h.fetch(ClientHarness.blocks(10));
    h.lookUps.runAll();
    assertEquals(3, h.transport.started.size());
    for (FakeTransport.StartedFetch fetch : h.transport.started) {
      h.transport.arrive(fetch, 0, fetch.ids.count());
      fetch.listener.onComplete();
    }
    assertEquals(new HashSet<>(Arrays.asList(ClientHarness.blocks(10))), h.listener.kept.keySet());
    h.assertNothingLeaks();
  }

  @Test
  void whatIsNoShuffleBlockIsSparks() {
    h.fetch("shuffle_0_1_2", "shuffleChunk_0_0_1_2");
    assertEquals(Arrays.asList("shuffle_0_1_2", "shuffleChunk_0_0_1_2"), h.spark.fetched);
    assertEquals(0, h.counters.fallbacks.sum());
  }

  @Test
  void afterAnErrorOnlyWhatWasNotDeliveredGoesToSpark() {
    FakeTransport.StartedFetch fetch = h.fetchStarted(ClientHarness.blocks(6));
    h.transport.arrive(fetch, 0, 2);
    fetch.listener.onError(2, 4, Failures.of(FetchError.CONNECTION_LOST, 2, 4));
    assertEquals(0, h.fallBackThreads.work.size(), "nothing is decided before the request is complete");
    fetch.listener.onComplete();
    assertEquals(0, h.spark.requests, "Spark's fetch may block and must not run on the transport's thread");
    h.fallBackThreads.runAll();
    assertEquals(ClientHarness.names(2, 3, 4, 5), h.spark.fetched);
    assertEquals(new HashSet<>(ClientHarness.names(0, 1)), h.listener.kept.keySet());
    assertEquals(1, h.counters.fallbacks.sum());
    assertEquals(4, h.counters.fallbackBlocks.sum());
    h.assertNothingLeaks();
  }

  @Test
  void blocksThatTheServerRefusesGoToSparkAndCauseNoBackOff() {
    FakeTransport.StartedFetch fetch = h.fetchStarted(ClientHarness.blocks(4));
    h.transport.arrive(fetch, 0, 4, 1, 3);
    fetch.listener.onComplete();
    h.fallBackThreads.runAll();
    assertEquals(ClientHarness.names(1, 3), h.spark.fetched);
    assertEquals(new HashSet<>(ClientHarness.names(0, 2)), h.listener.kept.keySet());
    h.fetch("shuffle_0_9_2");
    assertEquals(2, h.transport.started.size(), "the peer is asked again at once");
  }

  @Test
  void aListenerThatThrowsGetsAFailureAndOthersGetTheirBlocks() {
    FakeTransport.StartedFetch fetch = h.fetchStarted(ClientHarness.blocks(2));
    h.listener.throwsOnSuccess = new IllegalStateException("first");
    h.listener.throwsOnFailure = new IllegalStateException("second");
    h.transport.arrive(fetch, 0, 1);
    h.listener.throwsOnSuccess = null;
    h.transport.arrive(fetch, 1, 1);
    fetch.listener.onComplete();
    assertEquals("first", h.listener.failed.get("shuffle_0_0_2").getMessage());
    assertEquals(new HashSet<>(ClientHarness.names(1)), h.listener.kept.keySet());
    assertEquals(0, h.spark.requests, "what was offered to Spark once is not offered again");
    h.assertNothingLeaks();
  }

  @Test
  void aBlockThatCannotBeTakenGoesToSpark() {
    FakeTransport.StartedFetch fetch = h.fetchStarted(ClientHarness.blocks(2));
    h.transport.takeFails = new IllegalStateException("no memory");
    h.transport.arrive(fetch, 0, 1);
    h.transport.takeFails = null;
    h.transport.arrive(fetch, 1, 1);
    fetch.listener.onComplete();
    h.fallBackThreads.runAll();
    assertEquals(ClientHarness.names(0), h.spark.fetched);
    assertEquals(new HashSet<>(ClientHarness.names(1)), h.listener.kept.keySet());
  }

  @Test
  void aTaskThatIsOverLeavesNothingBehind() {
    FakeTransport.StartedFetch fetch = h.fetchStarted(ClientHarness.blocks(3));
    h.transport.arrive(fetch, 0, 1);
    h.listener.releaseAll();
    h.listener.taskIsOver = true;
    h.transport.arrive(fetch, 1, 2);
    fetch.listener.onComplete();
    assertEquals(3, h.transport.memory.size());
    assertEquals(0, h.transport.references());
  }

  @Test
  void aTransportThatRefusesTheFetchLeavesItAllToSpark() {
    h.transport.refuse = new EndpointException.Full("65536 requests are in flight");
    h.fetch(ClientHarness.blocks(2));
    h.lookUps.runAll();
    h.fallBackThreads.runAll();
    assertEquals(ClientHarness.names(0, 1), h.spark.fetched);
    assertEquals(1, h.counters.snapshot().get("fallbackReason.full"));
  }

  @Test
  void whenSparksFetchThrowsOnOurThreadTheBlocksFail() {
    FakeTransport.StartedFetch fetch = h.fetchStarted(ClientHarness.blocks(2));
    h.spark.fails = new IllegalStateException("no connection");
    fetch.listener.onComplete();
    h.fallBackThreads.runAll();
    assertEquals(new HashSet<>(ClientHarness.names(0, 1)), h.listener.failed.keySet());
  }

  @Test
  void whenStoppedTheBlocksFailRatherThanHang() {
    FakeTransport.StartedFetch fetch = h.fetchStarted(ClientHarness.blocks(2));
    h.fallBackThreads.stopped = true;
    fetch.listener.onComplete();
    assertEquals(new HashSet<>(ClientHarness.names(0, 1)), h.listener.failed.keySet());
  }

  @Test
  void oneWarningForAPeerAndAReason() {
    for (int i = 0; i < 50; i++) {
      FakeTransport.StartedFetch fetch = h.fetchStarted("shuffle_0_" + i + "_2");
      fetch.listener.onError(0, 1, Failures.of(FetchError.POOL_EXHAUSTED, 0, 1));
      fetch.listener.onComplete();
    }
    assertEquals(50, h.counters.fallbacks.sum());
    assertEquals(1, h.said.size());
    String line = h.said.get(0);
    assertTrue(line.contains("executor 3 at 10.0.0.7:7777") && line.contains("spark.faro.memory.limit"), line);
  }

  @Test
  void theRestOfTheClientIsSparks() throws Throwable {
    List<Method> surface = FakeSpark.surface();
    assertTrue(surface.size() >= 9, surface::toString);
    for (Method method : surface) {
      FakeSpark.call(h.client, method);
      assertEquals(Collections.singletonList(method.getName()), h.spark.calls);
      h.spark.calls.clear();
    }
  }

  @Test
  void closesSparksClientOnceAndThenLeavesEverythingToIt() throws Exception {
    h.client.close();
    h.client.close();
    assertEquals(1, h.spark.closed);
    h.fetch(ClientHarness.blocks(1));
    assertEquals(ClientHarness.names(0), h.spark.fetched);
    assertEquals(0, h.transport.started.size());
  }

  @Test
  void doesNotCloseAClientThatSparkClosesItself() throws Exception {
    FakeSpark spark = new FakeSpark();
    FaroConf conf = new FaroConf(new org.apache.spark.SparkConf(false));
    new FaroBlockStoreClient(spark, false, conf, null, null, null, id -> false).close();
    assertEquals(0, spark.closed);
  }

  @ParameterizedTest
  @EnumSource
  void everyFailureOfTheTransportHasAReason(FetchError error) {
    Throwable failure = Failures.of(error, 0, 1);
    assertNotNull(Reason.of(failure));
    assertFalse(Reason.of(failure) == Reason.OTHER, failure::toString);
  }
}
