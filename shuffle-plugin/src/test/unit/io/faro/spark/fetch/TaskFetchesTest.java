package io.faro.spark.fetch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.Failures;
import io.faro.FetchError;
import java.util.SplittableRandom;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskContext$;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.network.shuffle.BlockFetchingListener;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import scala.Option;

/** Requests end with their task; a block that a task asks for again comes another way. */
class TaskFetchesTest {
  private final ClientHarness h = new ClientHarness(false);
  private TaskContextImpl task;

  /** Has the form in which Scala compiles a listener within the fetch iterator. */
  @SuppressWarnings({"unused", "checkstyle:MemberName"})
  private static final class ListenerOf extends FakeListener {
    private final Object $outer;

    ListenerOf(Object reader) {
      $outer = reader;
    }
  }

  @BeforeEach
  void begin() {
    task = TaskContext$.MODULE$.empty();
    TaskContext$.MODULE$.setTaskContext(task);
  }

  @AfterEach
  void leave() {
    TaskContext$.MODULE$.unset();
  }

  private void endTask() {
    TaskContext context = task;
    ((TaskContextImpl) context).markTaskCompleted(Option.empty());
  }

  private FakeListener fetchFor(Object reader, String... blocks) {
    FakeListener listener = new ListenerOf(reader);
    fetchWith(listener, blocks);
    return listener;
  }

  private void fetchWith(BlockFetchingListener listener, String... blocks) {
    h.client.fetchBlocks(ClientHarness.HOST, ClientHarness.PORT, ClientHarness.EXECUTOR, blocks, listener, null);
    h.lookUps.runAll();
  }

  @Test
  void theRequestsOfATaskEndWithIt() {
    FakeTransport.StartedFetch fetch = h.fetchStarted(ClientHarness.blocks(3));
    h.transport.arrive(fetch, 0, 1);
    h.fetch("shuffle_0_9_2");
    assertEquals(2, h.transport.started.size());
    endTask();
    assertEquals(2, h.transport.cancelled);
    // Native code reports a cancelled request, and a block that was on its way.
    h.transport.arrive(fetch, 1, 1);
    fetch.listener.onError(2, 1, Failures.of(FetchError.CANCELLED, 2, 1));
    fetch.listener.onComplete();
    h.fallBackThreads.runAll();
    assertEquals(0, h.spark.requests, "nothing waits for the blocks");
    assertTrue(h.listener.failed.isEmpty());
    assertEquals(2, h.counters.cancelledRequests.sum());
    assertEquals(1, h.counters.lateBlocks.sum());
    assertTrue(h.said.isEmpty(), h.said.toString());
    h.assertNothingLeaks();
  }

  @Test
  void aRequestThatWaitsForACardEndsWithItsTaskToo() {
    h.fetch(ClientHarness.blocks(1));
    endTask();
    h.lookUps.runAll();
    assertEquals(0, h.transport.started.size());
    assertEquals(1, h.counters.cancelledRequests.sum());
  }

  @Test
  void requestsThatEndedAreNotCancelled() {
    FakeTransport.StartedFetch fetch = h.fetchStarted(ClientHarness.blocks(1));
    h.transport.arrive(fetch, 0, 1);
    fetch.listener.onComplete();
    endTask();
    assertEquals(0, h.transport.cancelled);
    assertEquals(0, h.counters.cancelledRequests.sum());
  }

  @Test
  void requestsOfNoTaskAreNotCancelled() {
    TaskContext$.MODULE$.unset();
    h.fetchStarted(ClientHarness.blocks(1));
    endTask();
    assertEquals(0, h.transport.cancelled);
  }

  @Test
  void aBlockThatAReaderAsksForAgainComesBySparksFetch() {
    Object reader = new Object();
    fetchFor(reader, ClientHarness.blocks(3));
    assertEquals(1, h.transport.started.size());
    fetchFor(reader, "shuffle_0_1_2");
    assertEquals(1, h.transport.started.size());
    assertEquals(ClientHarness.names(1), h.spark.fetched);
    assertEquals(1, h.counters.snapshot().get("fallbackReason.askedAgain"));
    assertEquals(1, h.said.size());
  }

  @Test
  void anotherReaderOfTheSameTaskIsNoRepetition() {
    fetchFor(new Object(), "shuffle_0_1_2");
    fetchFor(new Object(), "shuffle_0_1_2");
    fetchWith(new FakeListener(), "shuffle_0_1_2");
    fetchWith(new FakeListener(), "shuffle_0_1_2");
    assertEquals(4, h.transport.started.size());
    assertEquals(0, h.spark.requests);
  }

  @Test
  void withNeverItComesThroughFaroAgain() {
    ClientHarness never = new ClientHarness(true);
    Object reader = new Object();
    for (int i = 0; i < 2; i++) {
      never.client.fetchBlocks(ClientHarness.HOST, ClientHarness.PORT, ClientHarness.EXECUTOR,
          new String[] {"shuffle_0_1_2"}, new ListenerOf(reader), null);
      never.lookUps.runAll();
    }
    assertEquals(2, never.transport.started.size());
  }

  @Test
  void hashesAreASet() {
    TaskFetches.BlockHashes hashes = new TaskFetches.BlockHashes();
    SplittableRandom random = new SplittableRandom(1);
    for (int i = 0; i < 10_000; i++) {
      assertTrue(hashes.add(random.nextLong()));
    }
    random = new SplittableRandom(1);
    for (int i = 0; i < 10_000; i++) {
      assertFalse(hashes.add(random.nextLong()));
    }
    assertTrue(hashes.add(0));
    assertFalse(hashes.add(0));
  }
}
