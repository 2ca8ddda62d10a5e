package io.faro.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Which peers can be asked, and which had better not be asked right now.
 *
 * <p>A peer's card is looked up once, when its first request comes, on a bounded pool; requests wait for it in a queue
 * that holds no thread, and not for long. A peer without a card, or one whose requests fail, rests for a time that
 * doubles with each failure, so that a broken peer costs one timeout now and then instead of one per request; then one
 * look-up or request finds out whether it is back. With fallback=never nothing else can bring the blocks, so nothing
 * rests and a missing card is asked for a few times.
 *
 * <pre>
 *   new --look up--> LOOKING --card--> READY &lt;--rest over-- (resting) &lt;--fault-- READY
 *                      |  ^
 *               no card|  | rest over
 *                      v  |
 *                     ABSENT
 * </pre>
 */
final class Peers {
  static final long ABSENT_NANOS = TimeUnit.SECONDS.toNanos(30);
  static final long ABSENT_MAX_NANOS = TimeUnit.MINUTES.toNanos(5);
  static final long REST_NANOS = TimeUnit.SECONDS.toNanos(10);
  static final long REST_MAX_NANOS = TimeUnit.MINUTES.toNanos(1);
  /** Look-ups of one card in a row, with fallback=never, and the first pause between two. */
  static final int NEVER_TRIES = 6;
  static final long NEVER_PAUSE_MILLIS = 100;

  private static final int MOST_PEERS = 100_000;

  private final FaroTransport transport;
  private final CardStore cards;
  private final Executor lookUps;
  private final Timer timer;
  private final LongSupplier nanos;
  private final boolean never;
  private final long waitMillis;
  private final PluginCounters counters;
  private final Map<PeerKey, Peer> peers = new ConcurrentHashMap<>();

  Peers(FaroTransport transport, CardStore cards, Executor lookUps, Timer timer, LongSupplier nanos, boolean never,
      long waitMillis, PluginCounters counters) {
    this.transport = transport;
    this.cards = cards;
    this.lookUps = lookUps;
    this.timer = timer;
    this.nanos = nanos;
    this.never = never;
    this.waitMillis = waitMillis;
    this.counters = counters;
  }

  /** A request that wants to know; exactly one of the two is called, once. */
  interface Waiter {
    void go(long peerHandle);

    /** {@code here}: on the thread, and before the return, of {@link #whenReady}. */
    void decline(Reason reason, Throwable cause, boolean here);
  }

  void whenReady(PeerKey key, Waiter waiter) {
    Peer peer = peers.get(key);
    if (peer == null) {
      if (peers.size() >= MOST_PEERS) {
        // Executors come and go for months; what is forgotten is looked up again.
        peers.clear();
      }
      peer = peers.computeIfAbsent(key, Peer::new);
    }
    peer.whenReady(waiter);
  }

  /** A request to the peer ended in {@code reason}. */
  void failed(PeerKey key, Reason reason) {
    Peer peer = peers.get(key);
    if (peer != null && reason.avoidsPeer) {
      peer.rest(REST_NANOS, REST_MAX_NANOS);
    }
  }

  /** A request to the peer brought all it was to bring. */
  void worked(PeerKey key) {
    Peer peer = peers.get(key);
    if (peer != null) {
      peer.worked();
    }
  }

  private final class Peer {
    private final PeerKey key;
    private boolean ready;
    /** Written once, before {@code ready}. */
    private long handle;
    private boolean looking;
    /** The look-up under way has kept a request waiting for too long; others do not wait for it. */
    private boolean slow;
    private int tries;
    /** Failures in a row; 0: does not rest. */
    private int strikes;
    private long restsUntil;
    private Throwable lastProblem;
    private List<Waiter> waiting = new ArrayList<>();

    Peer(PeerKey key) {
      this.key = key;
    }

    void whenReady(Waiter waiter) {
      boolean go = false;
      boolean look = false;
      Reason declined = null;
      Throwable cause = null;
      synchronized (this) {
        if (strikes > 0 && !never && nanos.getAsLong() - restsUntil < 0) {
          declined = ready ? Reason.PEER_BACKOFF : Reason.CARD_MISSING;
          cause = lastProblem;
        } else if (ready) {
          go = true;
        } else if (slow) {
          declined = Reason.CARD_TIMEOUT;
        } else {
          waiting.add(waiter);
          look = !looking;
          looking = true;
        }
      }
      if (go) {
        waiter.go(handle);
      } else if (declined != null) {
        waiter.decline(declined, cause, true);
      } else {
        timer.after(waitMillis, () -> expire(waiter));
        if (look) {
          startLookUp();
        }
      }
    }

    private void startLookUp() {
      try {
        lookUps.execute(this::lookUp);
      } catch (RejectedExecutionException e) {
        lookedUp(null, e);
      }
    }

    private void lookUp() {
      counters.cardLookups.increment();
      try {
        byte[] card = cards.lookUp(key);
        lookedUp(card == null ? null : transport.addPeer(card), null);
      } catch (Throwable e) {
        lookedUp(null, e);
      }
    }

    private void lookedUp(Long found, Throwable problem) {
      List<Waiter> answered;
      synchronized (this) {
        if (found == null && never && ++tries < NEVER_TRIES && !waiting.isEmpty()) {
          lastProblem = problem;
          timer.after(NEVER_PAUSE_MILLIS << (tries - 1), this::startLookUp);
          return;
        }
        answered = waiting;
        waiting = new ArrayList<>();
        looking = false;
        slow = false;
        tries = 0;
        lastProblem = problem;
        if (found != null) {
          handle = found;
          ready = true;
          strikes = 0;
        } else {
          restLocked(ABSENT_NANOS, ABSENT_MAX_NANOS);
        }
      }
      for (Waiter waiter : answered) {
        if (found != null) {
          waiter.go(found);
        } else {
          waiter.decline(Reason.CARD_MISSING, problem, false);
        }
      }
    }

    private void expire(Waiter waiter) {
      synchronized (this) {
        if (!waiting.remove(waiter)) {
          return;
        }
        slow = !never;
      }
      waiter.decline(Reason.CARD_TIMEOUT, null, false);
    }

    synchronized void rest(long first, long most) {
      if (strikes > 0 && nanos.getAsLong() - restsUntil < 0) {
        // Several requests that fail together are one failure.
        return;
      }
      restLocked(first, most);
    }

    private void restLocked(long first, long most) {
      long length = Math.min(most, first << Math.min(strikes, 10));
      strikes++;
      restsUntil = nanos.getAsLong() + length;
    }

    synchronized void worked() {
      strikes = 0;
    }
  }
}
