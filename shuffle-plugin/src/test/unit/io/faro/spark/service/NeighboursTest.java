package io.faro.spark.service;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** The driver is asked once for each executor, and later again for those that were not near. */
class NeighboursTest {
  private final Set<String> near = new HashSet<>(Arrays.asList("1", "2"));
  private final List<List<String>> asked = new ArrayList<>();
  private long now = Long.MAX_VALUE - 5;
  private boolean isSilent;
  private boolean isKilled;
  private final Neighbours neighbours = new Neighbours(executors -> {
    asked.add(new ArrayList<>(executors));
    if (isKilled) {
      throw new InterruptedException();
    }
    if (isSilent) {
      throw new IOException("silent");
    }
    Set<String> found = new HashSet<>(executors);
    found.retainAll(near);
    return found;
  }, () -> now);

  private void assertNear(String expected, String... executors) {
    Set<String> wanted = expected.isEmpty()
        ? Collections.emptySet() : new HashSet<>(Arrays.asList(expected.split(" ")));
    assertEquals(wanted, neighbours.of(Arrays.asList(executors)));
  }

  @Test
  void eachExecutorIsAskedForOnce() {
    assertNear("1", "1", "3");
    assertNear("1 2", "1", "2", "3");
    assertNear("1 2", "1", "2", "3");
    assertEquals(Arrays.asList(Arrays.asList("1", "3"), Arrays.asList("2")), asked);
  }

  @Test
  void anExecutorThatWasNotNearIsAskedForAgain() {
    assertNear("1", "1", "3");
    near.add("3");
    now += Neighbours.ASK_AGAIN_NANOS - 1;
    assertNear("1", "1", "3");
    now++;
    assertNear("1 3", "1", "3");
    assertEquals(Arrays.asList("3"), asked.get(1));
  }

  @Test
  void aKilledTaskSaysNothingOfNeighbours() {
    isKilled = true;
    assertNear("", "1", "3");
    assertTrue(Thread.interrupted());
    isKilled = false;
    assertNear("1", "1", "3");
  }

  @Test
  void aDriverThatDoesNotAnswerIsLeftAloneForAWhile() {
    isSilent = true;
    assertNear("", "1");
    assertNear("", "1");
    assertEquals(1, asked.size());
    isSilent = false;
    now += Neighbours.ASK_AGAIN_NANOS;
    assertNear("1", "1");
  }

  @Test
  void theDriverIsAskedWithoutTheLockAndALateNoChangesNothing() {
    List<Neighbours> made = new ArrayList<>();
    Set<String> wanted = Collections.singleton("1");
    made.add(new Neighbours(executors -> {
      assertFalse(Thread.holdsLock(made.get(0)));
      asked.add(executors);
      if (asked.size() == 1) {
        // Another task's question and answer, while this one is under way.
        assertEquals(wanted, made.get(0).of(executors));
        return Collections.emptySet();
      }
      return wanted;
    }, () -> now));
    assertEquals(wanted, made.get(0).of(wanted));
    assertEquals(wanted, made.get(0).of(wanted));
    assertEquals(2, asked.size());
  }
}
