package io.faro.spark.peers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.spark.peers.PeerState.Decision;
import io.faro.spark.peers.PeerState.State;
import java.io.IOException;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.Map;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Every event in every state. */
class PeerStateTest {
  /** Near the overflow of nanoTime, which may be anything. */
  private static final long NOW = Long.MAX_VALUE - 5;
  private static final long HANDLE = 17;
  private static final IOException PROBLEM = new IOException("made by a test");

  private static final EnumSet<State> LOOKING_UP = EnumSet.of(State.LOOKING, State.SLOW);

  /** A peer that came into this state at {@link #NOW}. */
  private static PeerState in(State state, boolean never) {
    PeerState peer = new PeerState(never);
    if (state == State.UNKNOWN) {
      return peer;
    }
    request(peer, NOW);
    switch (state) {
      case UNKNOWN:
      case LOOKING:
        break;
      case SLOW:
        peer.waitedTooLong();
        break;
      case ABSENT:
        peer.notFound(NOW, PROBLEM, true);
        break;
      case READY:
        peer.found(HANDLE);
        break;
      case GONE:
        peer.gone();
        break;
      default:
        throw new AssertionError(state);
    }
    assertEquals(state, peer.state());
    return peer;
  }

  private static Decision request(PeerState peer, long now) {
    return peer.request(now, () -> false);
  }

  /** {@code later}: when the event comes, in seconds after the state began. */
  @ParameterizedTest
  @CsvSource({
    "UNKNOWN, 0,  LOOK_UP,         LOOKING",
    "LOOKING, 0,  WAIT,            LOOKING",
    "SLOW,    0,  DECLINE_SLOW,    SLOW",
    "ABSENT,  0,  DECLINE_ABSENT,  ABSENT",
    "ABSENT,  29, DECLINE_ABSENT,  ABSENT",
    "ABSENT,  30, LOOK_UP,         LOOKING",
    "READY,   0,  GO,              READY",
    "GONE,    0,  DECLINE_GONE,    GONE",
    "GONE,    999, DECLINE_GONE,   GONE",
  })
  void aRequest(State before, long later, Decision decision, State after) {
    PeerState peer = in(before, false);
    assertEquals(decision, request(peer, NOW + later * 1_000_000_000L));
    assertEquals(after, peer.state());
    if (decision == Decision.GO) {
      assertEquals(HANDLE, peer.handle());
    }
  }

  @ParameterizedTest
  @EnumSource
  void aCardIsFound(State before) {
    PeerState peer = in(before, false);
    if (LOOKING_UP.contains(before)) {
      peer.found(HANDLE);
      assertEquals(State.READY, peer.state());
      assertEquals(HANDLE, peer.handle());
      assertNull(peer.problem());
    } else {
      refused(peer, p -> p.found(18));
    }
  }

  @ParameterizedTest
  @EnumSource
  void theExecutorHasEnded(State before) {
    PeerState peer = in(before, false);
    assertEquals(LOOKING_UP.contains(before), peer.looksUp());
    if (LOOKING_UP.contains(before)) {
      peer.gone();
      assertEquals(State.GONE, peer.state());
    } else {
      refused(peer, PeerState::gone);
    }
  }

  @ParameterizedTest
  @EnumSource
  void noCardIsFound(State before) {
    PeerState peer = in(before, false);
    if (LOOKING_UP.contains(before)) {
      assertFalse(peer.notFound(NOW, PROBLEM, true));
      assertEquals(State.ABSENT, peer.state());
      assertSame(PROBLEM, peer.problem());
    } else {
      refused(peer, p -> p.notFound(NOW, PROBLEM, true));
    }
  }

  @ParameterizedTest
  @EnumSource
  void aRequestWaitedTooLong(State before) {
    PeerState peer = in(before, false);
    if (LOOKING_UP.contains(before)) {
      peer.waitedTooLong();
      assertEquals(State.SLOW, peer.state());
    } else {
      refused(peer, PeerState::waitedTooLong);
    }
  }

  @ParameterizedTest
  @EnumSource
  void aRequestSucceeded(State before) {
    PeerState peer = in(before, false);
    peer.succeeded();
    assertEquals(before, peer.state());
  }

  @ParameterizedTest
  @EnumSource
  void theEndpointBacksOff(State before) {
    PeerState peer = in(before, false);
    Decision usual = request(in(before, false), NOW);
    Decision decision = peer.request(NOW, () -> true);
    assertEquals(before == State.READY ? Decision.DECLINE_BACKOFF : usual, decision);
  }

  @ParameterizedTest
  @EnumSource
  void theExecutorMayHaveEnded(State before) {
    PeerState peer = in(before, false);
    Decision usual = request(in(before, false), NOW);
    peer.doubt();
    assertEquals(before, peer.state());
    assertEquals(before == State.READY ? Decision.LOOK_UP : usual, request(peer, NOW));
  }

  private static void refused(PeerState peer, Consumer<PeerState> event) {
    State before = peer.state();
    String message = assertThrows(IllegalStateException.class, () -> event.accept(peer)).getMessage();
    assertTrue(message.contains(before.name()), message);
    assertEquals(before, peer.state());
  }

  @Test
  void aDoubtEndsWithTheLookUpOrASuccessAndWaitsForTheBackOff() {
    PeerState peer = in(State.READY, false);
    peer.doubt();
    assertEquals(Decision.DECLINE_BACKOFF, peer.request(NOW, () -> true));
    assertEquals(State.READY, peer.state());
    assertEquals(Decision.LOOK_UP, request(peer, NOW));
    peer.found(HANDLE + 1);
    assertEquals(Decision.GO, request(peer, NOW));
    assertEquals(HANDLE + 1, peer.handle());
    peer.doubt();
    peer.succeeded();
    assertEquals(Decision.GO, request(peer, NOW));
  }

  @Test
  void anAbsentCardIsLookedUpLessAndLessOften() {
    PeerState peer = new PeerState(false);
    long now = NOW;
    for (long seconds : new long[] {30, 60, 120, 240, 300, 300}) {
      assertEquals(Decision.LOOK_UP, request(peer, now));
      assertFalse(peer.notFound(now, null, true));
      long end = now + seconds * 1_000_000_000L;
      assertEquals(Decision.DECLINE_ABSENT, request(peer, end - 1));
      now = end;
    }
    assertEquals(Decision.LOOK_UP, request(peer, now));
    peer.found(HANDLE);
    peer.doubt();
    assertEquals(Decision.LOOK_UP, request(peer, now));
    assertFalse(peer.notFound(now, null, true));
    assertEquals(Decision.LOOK_UP, request(peer, now + PeerState.ABSENT_NANOS), "the first time again");
  }

  @Test
  void withFallbackNeverNothingIsDeclined() {
    Map<State, Decision> decisions = new EnumMap<>(State.class);
    PeerState peer = new PeerState(true);
    decisions.put(peer.state(), request(peer, NOW));
    peer.waitedTooLong();
    decisions.put(peer.state(), request(peer, NOW));
    peer.found(HANDLE);
    decisions.put(peer.state(), request(peer, NOW));
    assertEquals(Arrays.asList(State.UNKNOWN, State.LOOKING, State.READY),
        Arrays.asList(decisions.keySet().toArray()));
    assertEquals(Arrays.asList(Decision.LOOK_UP, Decision.WAIT, Decision.GO),
        Arrays.asList(decisions.values().toArray()));
  }

  @Test
  void withFallbackNeverAMissingCardIsLookedUpAgainWhileRequestsWait() {
    PeerState peer = in(State.LOOKING, true);
    for (int i = 1; i < PeerState.NEVER_LOOK_UPS; i++) {
      assertTrue(peer.notFound(NOW, PROBLEM, true));
      assertEquals(State.LOOKING, peer.state());
      assertEquals(i, peer.lookUps());
    }
    assertFalse(peer.notFound(NOW, PROBLEM, true));
    assertEquals(State.UNKNOWN, peer.state());
    assertEquals(Decision.LOOK_UP, request(peer, NOW));
    assertFalse(peer.notFound(NOW, PROBLEM, false), "no request waits");
    assertEquals(State.UNKNOWN, peer.state());
  }
}
