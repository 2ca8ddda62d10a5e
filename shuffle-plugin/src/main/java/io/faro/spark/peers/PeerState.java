package io.faro.spark.peers;

import io.faro.Nullable;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/**
 * Decides whether requests to one peer may start, by what is known of its card. A state machine: each method is an
 * event, and every event is defined in every state. Not thread-safe; times are of {@link System#nanoTime}.
 *
 * <pre>
 *   UNKNOWN   -- request ------------> LOOKING      (starts the look-up of the peer's card)
 *   LOOKING   -- waited too long ----> SLOW         (new requests do not wait for the look-up)
 *   LOOKING, SLOW -- card found -----> READY
 *   LOOKING, SLOW -- no card --------> ABSENT
 *   LOOKING, SLOW -- executor ended -> GONE
 *   ABSENT    -- request, time over -> LOOKING
 *   READY     -- request ------------> READY        (declined while the endpoint backs off from the peer), or LOOKING
 *                                                   after that if the executor may have ended
 * </pre>
 *
 * With fallback=never Spark's own fetch is not allowed, so no request is declined without a try: there is no SLOW, no
 * card leads back to UNKNOWN, and a missing card is looked up a few times in a row.
 */
public final class PeerState {
  public static final long ABSENT_NANOS = TimeUnit.SECONDS.toNanos(30);
  public static final long ABSENT_MAX_NANOS = TimeUnit.MINUTES.toNanos(5);
  /** Look-ups of one card in a row with fallback=never. */
  public static final int NEVER_LOOK_UPS = 6;

  /** The states. */
  enum State { UNKNOWN, LOOKING, SLOW, ABSENT, READY, GONE }

  /** Decision on a new request. */
  enum Decision {
    /** Starts now, with {@link #handle}. */
    GO,
    /** Waits for the look-up under way. */
    WAIT,
    /** Waits, and the caller starts the look-up. */
    LOOK_UP,
    /** Does not wait: the look-up takes too long. */
    DECLINE_SLOW,
    /** The peer had no card a short time ago. */
    DECLINE_ABSENT,
    /** A request to the peer failed a short time ago, as the endpoint says. */
    DECLINE_BACKOFF,
    /** The executor has ended; executor ids are not used again. */
    DECLINE_GONE
  }

  private final boolean never;
  private State state = State.UNKNOWN;
  /** The peer's handle while the state is READY. */
  private long handle;
  /** The time at which ABSENT ends. */
  private long until;
  /** Look-ups without a card, in a row. */
  private int absences;
  /** Look-ups of LOOKING, with fallback=never. */
  private int lookUps;
  /** True if the state is READY although the executor may have ended. */
  private boolean doubted;
  /** Error of the last look-up, if it failed with one. */
  private Throwable problem;

  PeerState(boolean never) {
    this.never = never;
  }

  State state() {
    return state;
  }

  long handle() {
    return handle;
  }

  /** Returns why the last look-up failed; null if it did not, or the peer has no card. */
  @Nullable Throwable problem() {
    return problem;
  }

  /** A request wants to start. {@code backedOff} is asked in READY only. */
  Decision request(long now, BooleanSupplier backedOff) {
    switch (state) {
      case UNKNOWN:
        state = State.LOOKING;
        return Decision.LOOK_UP;
      case LOOKING:
        return Decision.WAIT;
      case SLOW:
        return Decision.DECLINE_SLOW;
      case ABSENT:
        if (now - until < 0) {
          return Decision.DECLINE_ABSENT;
        }
        state = State.LOOKING;
        return Decision.LOOK_UP;
      case READY:
        if (backedOff.getAsBoolean()) {
          return Decision.DECLINE_BACKOFF;
        }
        if (doubted) {
          state = State.LOOKING;
          return Decision.LOOK_UP;
        }
        return Decision.GO;
      case GONE:
        return Decision.DECLINE_GONE;
      default:
        throw new AssertionError(state);
    }
  }

  /** The look-up found a card, and the endpoint gave the peer this handle. */
  void found(long peerHandle) {
    switch (state) {
      case LOOKING:
      case SLOW:
        state = State.READY;
        handle = peerHandle;
        absences = 0;
        doubted = false;
        lookUps = 0;
        problem = null;
        return;
      case UNKNOWN:
      case ABSENT:
      case READY:
      case GONE:
        throw noLookUp("a card was found");
      default:
        throw new AssertionError(state);
    }
  }

  /**
   * The look-up found no card, or failed with {@code why}. True: the caller looks up once more, as {@code waiting}
   * requests have no other way; the state stays.
   */
  boolean notFound(long now, Throwable why, boolean waiting) {
    switch (state) {
      case LOOKING:
      case SLOW:
        problem = why;
        lookUps++;
        if (never && waiting && lookUps < NEVER_LOOK_UPS) {
          return true;
        }
        lookUps = 0;
        if (never) {
          state = State.UNKNOWN;
        } else {
          state = State.ABSENT;
          until = now + Math.min(ABSENT_MAX_NANOS, ABSENT_NANOS << Math.min(absences, 10));
          absences++;
        }
        return false;
      case UNKNOWN:
      case ABSENT:
      case READY:
      case GONE:
        throw noLookUp("no card was found");
      default:
        throw new AssertionError(state);
    }
  }

  /** The look-up found that the executor has ended. */
  void gone() {
    switch (state) {
      case LOOKING:
      case SLOW:
        state = State.GONE;
        return;
      case UNKNOWN:
      case ABSENT:
      case READY:
      case GONE:
        throw noLookUp("an executor is gone");
      default:
        throw new AssertionError(state);
    }
  }

  boolean looksUp() {
    return state == State.LOOKING || state == State.SLOW;
  }

  /** Look-ups of this card in a row that found none. */
  int lookUps() {
    return lookUps;
  }

  /** A request has waited for the look-up for too long. */
  void waitedTooLong() {
    switch (state) {
      case LOOKING:
        state = never ? State.LOOKING : State.SLOW;
        return;
      case SLOW:
        return;
      case UNKNOWN:
      case ABSENT:
      case READY:
      case GONE:
        throw noLookUp("a request waited too long");
      default:
        throw new AssertionError(state);
    }
  }

  /** The executor may have ended: its card is looked up again before the next request to it starts. */
  void doubt() {
    doubted = state == State.READY;
  }

  /** A request brought all its blocks. */
  void succeeded() {
    doubted = false;
  }

  private IllegalStateException noLookUp(String event) {
    return new IllegalStateException(event + " in state " + state + ", in which no look-up is under way");
  }
}
