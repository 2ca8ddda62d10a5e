package io.faro.spark.fetch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.Failures;
import io.faro.FetchError;
import io.faro.spark.service.KnownHosts;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** With copies, what neither service nor executor has is asked from other hosts' services, then left to Spark. */
class ReplicasLastTest {
  private static final int SOURCE = 0;

  private final ClientHarness h = new ClientHarness(
      new SparkConf(false).set("spark.faro.service.directory", "/run/faro").set("spark.faro.replicas", "1"));

  @BeforeEach
  void fourServices() throws IOException {
    h.serviceCard = "0".getBytes(StandardCharsets.UTF_8);
    KnownHosts.tell(h.hosts, "0", "1", "2", "3");
    h.hosts.keeps(ClientHarness.EXECUTOR, SOURCE);
  }

  /** The request of that number fails as when nobody listens. */
  private void refused(int number) {
    h.lookUps.runAll();
    FakeTransport.StartedFetch fetch = h.transport.started.get(number);
    fetch.listener.onError(0, fetch.ids.count(), Failures.of(FetchError.UNREACHABLE, 0, fetch.ids.count()));
    fetch.listener.onComplete();
    h.lookUps.runAll();
  }

  /** Where the copy of an output should be. */
  private int place(long map, int round) {
    return h.hosts.copiesOf(ClientHarness.EXECUTOR, 0, map)[round];
  }

  @Test
  void eachBlockIsAskedWhereItsCopyShouldBe() {
    h.fetch(ClientHarness.blocks(12));
    refused(0);
    refused(1);
    int asked = h.transport.started.size();
    assertTrue(asked > 3, "copies of 12 outputs are on more than one of three hosts");
    for (FakeTransport.StartedFetch copies : h.transport.started.subList(2, asked)) {
      for (int i = 0; i < copies.ids.count(); i++) {
        assertEquals('0' + place(copies.ids.map(i), 0), copies.peer);
      }
      h.transport.arrive(copies, 0, copies.ids.count());
      copies.listener.onComplete();
    }
    assertEquals(12, h.listener.kept.size());
    assertEquals(12, h.counters.replicaBlocks.sum());
    assertEquals(0, h.counters.fallbacks.sum());
    assertEquals(asked, h.transport.started.size());
    h.assertNothingLeaks();
  }

  @Test
  void whatIsNotThereIsAskedFurtherDown() throws IOException {
    h.fetch(ClientHarness.blocks(1));
    refused(0);
    refused(1);
    FakeTransport.StartedFetch first = h.transport.last();
    assertEquals('0' + place(0, 0), first.peer);
    h.transport.arrive(first, 0, 1, 0);
    first.listener.onComplete();
    h.lookUps.runAll();
    FakeTransport.StartedFetch second = h.transport.last();
    assertEquals('0' + place(0, 1), second.peer);
    h.transport.arrive(second, "found");
    second.listener.onComplete();
    assertEquals("found", h.listener.content("shuffle_0_0_2"));
    assertEquals(1, h.counters.replicaBlocks.sum());
    h.assertNothingLeaks();
  }

  @Test
  void whatNoServiceHasComesBySparksFetch() {
    h.fetch(ClientHarness.blocks(1));
    for (int number = 0; number < 5; number++) {
      refused(number);
    }
    h.fallBackThreads.runAll();
    assertEquals(5, h.transport.started.size());
    assertEquals(1, h.spark.requests);
    assertEquals(1, h.counters.fallbacks.sum());
    assertEquals(0, h.counters.replicaBlocks.sum());
  }
}
