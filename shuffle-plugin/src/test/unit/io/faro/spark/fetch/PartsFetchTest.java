package io.faro.spark.fetch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.Failures;
import io.faro.FetchError;
import io.faro.spark.metrics.Reason;
import io.faro.spark.read.groups.BlockListener;
import io.faro.spark.read.places.Parts;
import io.faro.spark.transport.FaroManagedBuffer;
import java.io.IOException;
import java.util.Collections;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.junit.jupiter.api.Test;

/** Parts that a reader asks for arrive by number, through Faro or by Spark's own fetch, each once. */
class PartsFetchTest {
  private final ClientHarness h = new ClientHarness(false);
  private final Map<Integer, ManagedBuffer> arrived = new TreeMap<>();
  private final Map<Integer, Throwable> failed = new TreeMap<>();
  private boolean verifies;
  private final BlockListener listener = new BlockListener() {
    @Override
    public boolean verifies() {
      return verifies;
    }

    @Override
    public void arrived(int part, ManagedBuffer bytes) {
      assertNull(arrived.put(part, bytes), "twice");
    }

    @Override
    public void left(int[] parts, Reason reason, Throwable cause, boolean onTaskThread) {
      for (int part : parts) {
        assertNull(failed.put(part, cause), "twice");
      }
    }
  };

  /** Like {@link ClientHarness#blocks}, for parts. */
  private static Parts parts(int count) {
    Parts parts = new Parts(0);
    for (int i = 0; i < count; i++) {
      parts.add(i, i, 2, 3, 10, false);
    }
    return parts;
  }

  private FakeTransport.StartedFetch fetch(ClientHarness of, int count) {
    of.client.fetch(ClientHarness.HOST, ClientHarness.PORT, ClientHarness.EXECUTOR, parts(count), listener);
    of.lookUps.runAll();
    return of.transport.started.isEmpty() ? null : of.transport.last();
  }

  /** Spark's own fetch delivers these, and releases its own references. */
  private void bySpark(int... maps) {
    for (String name : ClientHarness.names(maps)) {
      ManagedBuffer buffer = new FaroManagedBuffer(new FakeMemory(new byte[] {1}));
      h.spark.listener.onBlockFetchSuccess(name, buffer);
      buffer.release();
    }
  }

  private void releaseAll() {
    arrived.values().forEach(ManagedBuffer::release);
    h.assertNothingLeaks();
  }

  @Test
  void partsArriveThroughFaroWithOneReference() {
    FakeTransport.StartedFetch fetch = fetch(h, 3);
    h.transport.arrive(fetch, 0, 3);
    fetch.listener.onComplete();
    assertEquals(3, arrived.size());
    assertEquals(0, h.spark.requests);
    releaseAll();
  }

  @Test
  void onlyReadersThatVerifyThePartsAskForUncheckedOnes() {
    assertFalse(fetch(h, 1).verifies);
    verifies = true;
    assertTrue(fetch(h, 1).verifies);
    // Spark's iterator verifies nothing before it hands a block over.
    h.fetch(ClientHarness.blocks(1));
    assertFalse(h.transport.last().verifies);
  }

  @Test
  void whatFaroDoesNotDeliverComesBySparksFetch() {
    FakeTransport.StartedFetch fetch = fetch(h, 3);
    h.transport.arrive(fetch, 1, 1);
    fetch.listener.onError(0, 3, Failures.of(FetchError.CORRUPT, 0, 3));
    fetch.listener.onComplete();
    h.fallBackThreads.runAll();
    assertEquals(ClientHarness.names(0, 2), h.spark.fetched);
    bySpark(2, 0);
    assertEquals(3, arrived.size());
    assertEquals(Collections.emptyMap(), failed);
    releaseAll();
  }

  @Test
  void withNeverAPartThatIsNotDeliveredHasFailed() {
    ClientHarness never = new ClientHarness(true);
    FakeTransport.StartedFetch fetch = fetch(never, 2);
    never.transport.arrive(fetch, 0, 1);
    fetch.listener.onComplete();
    assertEquals(Collections.singleton(1), failed.keySet());
    assertTrue(failed.get(1) instanceof FaroFetchException);
    arrived.values().forEach(ManagedBuffer::release);
    never.assertNothingLeaks();
  }

  @Test
  void aDamagedPartComesAgainBySparksFetch() {
    h.client.fetchAgain(ClientHarness.HOST, ClientHarness.PORT, ClientHarness.EXECUTOR, parts(1), listener);
    assertEquals(ClientHarness.names(0), h.spark.fetched);
    bySpark(0);
    assertEquals(1, h.counters.snapshot().get("fallbackReason.askedAgain"));
    assertEquals(1, arrived.size());
    releaseAll();
  }

  @Test
  void aClientThatIsDetachedLeavesAllToSpark() {
    h.client.detach();
    assertNull(fetch(h, 2));
    assertEquals(ClientHarness.names(0, 1), h.spark.fetched);
    bySpark(0);
    h.spark.listener.onBlockFetchFailure("shuffle_0_1_2", new IOException("gone"));
    assertEquals(Collections.singleton(1), failed.keySet());
    assertEquals(1, arrived.size());
    releaseAll();
  }
}
