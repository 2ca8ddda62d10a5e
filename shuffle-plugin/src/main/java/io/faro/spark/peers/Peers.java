package io.faro.spark.peers;

import io.faro.spark.metrics.PluginCounters;
import io.faro.spark.metrics.Reason;
import io.faro.spark.transport.FaroTransport;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * The peers of an executor, each with its {@link PeerState}, and the requests that wait for a card.
 *
 * <p>A peer's card is looked up once, for its first request, on threads of their own ({@link PerHost}). Requests wait
 * for it in a list, without a thread, for a bounded time. A peer without a card is left alone for a time that doubles
 * with each look-up. Whether a peer whose requests fail is left alone, the endpoint decides ({@link
 * FaroTransport#isBackedOff}); with fallback=never it is not asked, because nothing else delivers the blocks.
 */
public final class Peers {
  /** The first pause between two look-ups of one card with fallback=never; it doubles. */
  public static final long NEVER_PAUSE_MILLIS = 100;

  /** A peer without a request for this long is forgotten; its next request looks its card up again. */
  public static final long FORGET_NANOS = TimeUnit.MINUTES.toNanos(10);

  private static final long MAX_WAIT_MILLIS = 5_000;

  private final FaroTransport transport;
  private final CardStore cards;
  private final PerHost lookUps;
  private final Timer timer;
  private final LongSupplier nanos;
  private final boolean never;
  private final long waitMillis;
  private final PluginCounters counters;
  private final Map<PeerKey, Peer> peers = new ConcurrentHashMap<>();

  public Peers(FaroTransport transport, CardStore cards, PerHost lookUps, Timer timer, LongSupplier nanos,
      boolean never, long waitMillis, PluginCounters counters) {
    this.transport = transport;
    this.cards = cards;
    this.lookUps = lookUps;
    this.timer = timer;
    this.nanos = nanos;
    this.never = never;
    this.waitMillis = waitMillis;
    this.counters = counters;
  }

  /** Maximum wait of a request for its peer's card. With fallback=never nothing else delivers its blocks. */
  public static long waitMillis(boolean never, long requestTimeoutMillis) {
    return never ? requestTimeoutMillis : Math.min(MAX_WAIT_MILLIS, requestTimeoutMillis);
  }

  /** A request; exactly one of the two methods is called, once. */
  public interface Waiter {
    void go(long peerHandle);

    /** The request cannot start. {@code onTaskThread}: the call is made on the thread of {@link #whenReady}. */
    void decline(Reason reason, Throwable cause, boolean onTaskThread);
  }

  /** Starts the request when the peer's card is there, or declines it. */
  public void whenReady(PeerKey key, Waiter waiter) {
    peers.computeIfAbsent(key, Peer::new).whenReady(waiter);
  }

  /** Forgets peers without requests: executors come and go for months. */
  public void forgetIdle() {
    long now = nanos.getAsLong();
    peers.values().removeIf(peer -> peer.isIdle(now));
  }

  public int size() {
    return peers.size();
  }

  /** A request to the peer ended because of {@code reason}. Its back-off has begun, if there is one. */
  public void failed(PeerKey key, Reason reason) {
    Peer peer = peers.get(key);
    boolean unreachable = reason == Reason.UNREACHABLE || reason == Reason.CONNECTION_LOST;
    if (peer != null && unreachable && cards.doubt(key) && !never) {
      peer.doubt();
    }
  }

  /** A request to the peer brought all its blocks. */
  public void worked(PeerKey key) {
    Peer peer = peers.get(key);
    if (peer != null) {
      peer.worked();
    }
  }

  private final class Peer implements CardStore.Answer {
    private final PeerKey key;
    private final PeerState state = new PeerState(never);
    private List<Waiter> waiting = new ArrayList<>();
    /** Time when the last request came. */
    private long used;
    /** Time when the look-up under way began. */
    private long since;

    Peer(PeerKey key) {
      this.key = key;
    }

    void whenReady(Waiter waiter) {
      PeerState.Decision decision;
      long handle;
      Throwable problem;
      synchronized (this) {
        used = nanos.getAsLong();
        decision = state.request(used, () -> !never && transport.isBackedOff(state.handle()));
        handle = state.handle();
        problem = state.problem();
        if (decision == PeerState.Decision.WAIT || decision == PeerState.Decision.LOOK_UP) {
          waiting.add(waiter);
        }
      }
      switch (decision) {
        case GO:
          waiter.go(handle);
          return;
        case WAIT:
          timer.after(waitMillis, () -> expire(waiter));
          return;
        case LOOK_UP:
          timer.after(waitMillis, () -> expire(waiter));
          startLookUp();
          return;
        case DECLINE_SLOW:
          waiter.decline(Reason.CARD_TIMEOUT, null, true);
          return;
        case DECLINE_ABSENT:
          waiter.decline(Reason.CARD_MISSING, problem, true);
          return;
        case DECLINE_BACKOFF:
          waiter.decline(Reason.PEER_BACKOFF, null, true);
          return;
        case DECLINE_GONE:
          waiter.decline(Reason.EXECUTOR_GONE, null, true);
          return;
        default:
          throw new AssertionError(decision);
      }
    }

    private void startLookUp() {
      synchronized (this) {
        since = nanos.getAsLong();
      }
      try {
        lookUps.execute(key.host, this::lookUp);
      } catch (RejectedExecutionException e) {
        missing(e);
      }
    }

    private void lookUp() {
      counters.cardLookups.increment();
      long asked;
      synchronized (this) {
        asked = since;
      }
      try {
        cards.lookUp(key, asked, this);
      } catch (Throwable e) {
        missing(e);
      }
    }

    @Override
    public void found(byte[] card, List<InetAddress> knownAt) {
      long handle;
      try {
        handle = transport.addPeer(card, knownAt);
      } catch (Throwable e) {
        missing(e);
        return;
      }
      List<Waiter> ready;
      synchronized (this) {
        state.found(handle);
        ready = takeWaiting();
      }
      ready.forEach(waiter -> waiter.go(handle));
    }

    @Override
    public void gone() {
      List<Waiter> declined;
      synchronized (this) {
        state.gone();
        declined = takeWaiting();
      }
      declined.forEach(waiter -> waiter.decline(Reason.EXECUTOR_GONE, null, false));
    }

    @Override
    public void missing(Throwable problem) {
      List<Waiter> declined;
      synchronized (this) {
        if (state.notFound(nanos.getAsLong(), problem, !waiting.isEmpty())) {
          timer.after(NEVER_PAUSE_MILLIS << (state.lookUps() - 1), this::startLookUp);
          return;
        }
        declined = takeWaiting();
      }
      declined.forEach(waiter -> waiter.decline(Reason.CARD_MISSING, problem, false));
    }

    private List<Waiter> takeWaiting() {
      List<Waiter> all = waiting;
      waiting = new ArrayList<>();
      return all;
    }

    private void expire(Waiter waiter) {
      synchronized (this) {
        if (!waiting.remove(waiter)) {
          return;
        }
        state.waitedTooLong();
      }
      waiter.decline(Reason.CARD_TIMEOUT, null, false);
    }

    synchronized boolean isIdle(long now) {
      return now - used >= FORGET_NANOS && waiting.isEmpty() && !state.looksUp();
    }

    synchronized void doubt() {
      state.doubt();
    }

    synchronized void worked() {
      state.succeeded();
    }
  }
}
