package io.faro.spark.fetch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.Failures;
import io.faro.FetchError;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

/** With node services, a request goes to the service of the executor's host, then to the executor, then to Spark. */
class ServiceFirstTest {
  private static final int SERVICE = 's';
  private static final int EXECUTOR = '*';

  private final ClientHarness h =
      new ClientHarness(new SparkConf(false).set("spark.faro.service.directory", "/run/faro"));

  ServiceFirstTest() {
    h.serviceCard = "service".getBytes(StandardCharsets.UTF_8);
  }

  private FakeTransport.StartedFetch last(int peer) {
    h.lookUps.runAll();
    FakeTransport.StartedFetch last = h.transport.last();
    assertEquals(peer, last.peer);
    return last;
  }

  @Test
  void theServiceDeliversAndTheExecutorIsNotAsked() {
    h.fetch(ClientHarness.blocks(3));
    FakeTransport.StartedFetch fetch = last(SERVICE);
    h.transport.arrive(fetch, 0, 3);
    fetch.listener.onComplete();
    assertEquals(3, h.listener.kept.size());
    assertTrue(h.asked.isEmpty());
    assertEquals(3, h.counters.serviceBlocks.sum());
    assertEquals(1, h.transport.started.size());
    h.assertNothingLeaks();
  }

  @Test
  void whatTheServiceDoesNotHaveComesFromTheExecutor() throws IOException {
    h.fetch(ClientHarness.blocks(4));
    FakeTransport.StartedFetch first = last(SERVICE);
    h.transport.arrive(first, 0, 4, 1, 3);
    first.listener.onComplete();
    FakeTransport.StartedFetch second = last(EXECUTOR);
    assertEquals(2, second.ids.count());
    assertEquals("shuffle_0_3_2", second.ids.name(1));
    h.transport.arrive(second, 0, 2);
    second.listener.onComplete();
    assertEquals(4, h.listener.kept.size());
    assertEquals("block 1", h.listener.content("shuffle_0_3_2"));
    assertEquals(0, h.spark.requests);
    assertEquals(2, h.counters.serviceBlocks.sum());
    assertEquals(2, h.counters.executorBlocks.sum());
    assertEquals(h.counters.executorBytes.sum(), h.counters.serviceBytes.sum());
    h.assertNothingLeaks();
  }

  /** The tab shows these names. */
  @Test
  void theFiguresNameWhatServed() {
    h.fetch(ClientHarness.blocks(4));
    FakeTransport.StartedFetch first = last(SERVICE);
    h.transport.arrive(first, 0, 4, 3);
    first.listener.onComplete();
    FakeTransport.StartedFetch second = last(EXECUTOR);
    h.transport.arrive(second, 0, 1);
    second.listener.onComplete();
    Map<String, Long> blocks = new TreeMap<>();
    h.counters.traffic.slowest(10).forEach(peer -> blocks.put(peer.peer, peer.blocks));
    Map<String, Long> expected = new TreeMap<>();
    expected.put("service of 10.0.0.7", 3L);
    expected.put("executor 3 at 10.0.0.7:7777", 1L);
    assertEquals(expected, blocks);
    h.assertNothingLeaks();
  }

  @Test
  void whatNeitherHasComesBySparksFetch() {
    h.fetch(ClientHarness.blocks(2));
    FakeTransport.StartedFetch first = last(SERVICE);
    first.listener.onError(0, 2, Failures.of(FetchError.CONNECTION_LOST, 0, 2));
    first.listener.onComplete();
    FakeTransport.StartedFetch second = last(EXECUTOR);
    second.listener.onError(0, 2, Failures.of(FetchError.CONNECTION_LOST, 0, 2));
    second.listener.onComplete();
    h.fallBackThreads.runAll();
    assertEquals(1, h.spark.requests);
    assertEquals(1, h.counters.fallbacks.sum());
    assertTrue(h.listener.kept.isEmpty());
  }

  @Test
  void anExecutorWithoutAServiceIsAskedItself() {
    h.serviceCard = null;
    h.fetch(ClientHarness.blocks(2));
    FakeTransport.StartedFetch fetch = last(EXECUTOR);
    h.transport.arrive(fetch, 0, 2);
    fetch.listener.onComplete();
    assertEquals(2, h.listener.kept.size());
    assertEquals(0, h.counters.serviceBlocks.sum());
    h.assertNothingLeaks();
  }

  @Test
  void aServiceThatFailsIsLeftAloneForAWhile() {
    h.fetch(ClientHarness.blocks(1));
    FakeTransport.StartedFetch first = last(SERVICE);
    first.listener.onError(0, 1, Failures.of(FetchError.CONNECTION_LOST, 0, 1));
    first.listener.onComplete();
    h.transport.backedOff.add((long) SERVICE);
    FakeTransport.StartedFetch second = last(EXECUTOR);
    h.transport.arrive(second, 0, 1);
    second.listener.onComplete();
    h.listener.releaseAll();
    h.listener.kept.clear();
    h.fetch(ClientHarness.blocks(1));
    last(EXECUTOR);
    assertFalse(h.spark.requests > 0);
    h.transport.backedOff.clear();
    h.fetch(ClientHarness.blocks(1));
    last(SERVICE);
  }
}
