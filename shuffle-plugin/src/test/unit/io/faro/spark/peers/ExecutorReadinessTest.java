package io.faro.spark.peers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

class ExecutorReadinessTest {
  private long nanos;
  /** An executor that gets its card while a call waits. */
  private String starting = "";
  private final Map<String, PeerKey> alive = new TreeMap<>();
  private final TreeSet<String> withCard = new TreeSet<>();
  private final TreeSet<String> silent = new TreeSet<>();
  private final List<String> asked = new ArrayList<>();
  private final CardStore cards = new CardStore() {
    @Override
    public void lookUp(PeerKey peer, long since, Answer answer) {
      asked.add(peer.executor);
      if (silent.contains(peer.executor)) {
        return;
      }
      if (withCard.contains(peer.executor)) {
        answer.found(new byte[1], Collections.emptyList());
      } else {
        answer.missing(null);
      }
    }

    @Override
    public boolean doubt(PeerKey peer) {
      throw new AssertionError("nothing is fetched here");
    }
  };
  private final ExecutorReadiness.Clock clock = new ExecutorReadiness.Clock() {
    @Override
    public long getAsLong() {
      return nanos;
    }

    @Override
    public void sleep(long pause) {
      nanos += pause;
      withCard.add(starting);
    }
  };
  private final ExecutorReadiness readiness = new ExecutorReadiness(() -> alive, cards, Runnable::run, clock);

  private void executor(String id) {
    alive.put(id, new PeerKey(id, "host", 1));
  }

  @Test
  void whereThereIsNoExecutorNothingIsKnown() {
    assertFalse(readiness.all());
  }

  @Test
  void anExecutorWithACardIsNotAskedAgain() {
    executor("1");
    executor("2");
    withCard.addAll(Arrays.asList("1", "2"));
    assertTrue(readiness.all());
    assertTrue(readiness.all());
    assertEquals(Arrays.asList("1", "2"), asked);
    assertEquals(0, nanos, "nothing is awaited");
    executor("3");
    assertFalse(readiness.all());
    alive.remove("3");
    assertTrue(readiness.all());
  }

  @Test
  void anExecutorThatStartsIsAwaited() {
    executor("1");
    starting = "1";
    assertTrue(readiness.all());
    assertEquals(ExecutorReadiness.LOOK_NANOS, nanos);
  }

  @Test
  void anExecutorWithoutFaroIsAwaitedOnceAndAskedAgainSometimes() {
    executor("1");
    assertFalse(readiness.all());
    assertEquals(ExecutorReadiness.WAIT_NANOS, nanos);
    int questions = asked.size();
    assertFalse(readiness.all());
    assertEquals(ExecutorReadiness.WAIT_NANOS, nanos);
    assertEquals(questions, asked.size());
    withCard.add("1");
    nanos += ExecutorReadiness.PAUSE_NANOS;
    assertTrue(readiness.all());
    assertEquals(questions + 1, asked.size());
  }

  @Test
  void anExecutorThatDoesNotAnswerIsAskedOnce() {
    executor("1");
    silent.add("1");
    assertFalse(readiness.all());
    assertFalse(readiness.all());
    assertEquals(ExecutorReadiness.WAIT_NANOS, nanos);
    assertEquals(Collections.singletonList("1"), asked);
  }

  @Test
  void aDirectoryThatFailsSaysNothing() {
    ExecutorReadiness broken = new ExecutorReadiness(() -> {
      throw new IllegalStateException("the driver stops");
    }, cards, Runnable::run, clock);
    assertFalse(broken.all());
  }
}
