package io.faro.spark.peers;

import java.net.InetAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tells the driver whether Faro runs in all executors: one where it runs has an endpoint card. One without its jar,
 * with another version of it or without the native library has none. An executor with a card is not asked again.
 */
public final class ExecutorReadiness {
  private static final Logger LOG = LoggerFactory.getLogger(ExecutorReadiness.class);
  /** Time that an executor has since the first question, for it may be starting, and for each answer. */
  static final long WAIT_NANOS = TimeUnit.SECONDS.toNanos(2);
  /** Time between two looks within a call. */
  static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(20);
  /** Time between two questions to an executor that has no card after {@link #WAIT_NANOS}. */
  static final long PAUSE_NANOS = TimeUnit.SECONDS.toNanos(1);

  /** Knows the executors. */
  public interface Source {
    /** Returns the executors that are alive, by id. */
    Map<String, PeerKey> alive() throws Exception;
  }

  /** Time, which passes. */
  public interface Clock extends LongSupplier {
    void sleep(long nanos) throws InterruptedException;
  }

  private static final class CardCheck implements CardStore.Answer {
    final long since;
    volatile long asked;
    volatile boolean isUnderWay;
    volatile boolean hasCard;

    CardCheck(long now) {
      since = now;
      asked = now - PAUSE_NANOS;
    }

    @Override
    public void found(byte[] card, List<InetAddress> knownAt) {
      hasCard = true;
      isUnderWay = false;
    }

    @Override
    public void missing(Throwable why) {
      isUnderWay = false;
    }

    @Override
    public void gone() {
      isUnderWay = false;
    }
  }

  private final Source source;
  private final CardStore cards;
  private final Executor lookUps;
  private final Clock clock;
  /** By executor; those that have ended leave it. Guarded by this. */
  private final Map<String, CardCheck> checks = new HashMap<>();

  public ExecutorReadiness(Source source, CardStore cards, Executor lookUps, Clock clock) {
    this.source = source;
    this.cards = cards;
    this.lookUps = lookUps;
    this.clock = clock;
  }

  /** Asks executors that are not known yet, so that a later {@link #all} need not wait for them. */
  public void look() {
    lookUps.execute(() -> {
      try {
        ask(source.alive(), clock.getAsLong());
      } catch (Exception e) {
        LOG.debug("The executors are not known", e);
      }
    });
  }

  /** Returns whether Faro runs in all executors. Without an executor it is not known, and this returns false. */
  public boolean all() {
    try {
      long start = clock.getAsLong();
      while (true) {
        Map<String, PeerKey> alive = source.alive();
        long now = clock.getAsLong();
        boolean all = !alive.isEmpty();
        boolean mayChange = false;
        for (CardCheck check : ask(alive, now)) {
          all &= check.hasCard;
          mayChange |= !check.hasCard
              && (now - check.since < WAIT_NANOS || check.isUnderWay && now - check.asked < WAIT_NANOS);
        }
        if (all || !mayChange || now - start >= WAIT_NANOS) {
          return all;
        }
        clock.sleep(LOOK_NANOS);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    } catch (Exception e) {
      LOG.debug("The executors are not known", e);
      return false;
    }
  }

  private synchronized List<CardCheck> ask(Map<String, PeerKey> alive, long now) {
    checks.keySet().retainAll(alive.keySet());
    List<CardCheck> all = new ArrayList<>();
    alive.forEach((executor, peer) -> {
      CardCheck check = checks.computeIfAbsent(executor, id -> new CardCheck(now));
      long pause = now - check.since < WAIT_NANOS ? LOOK_NANOS : PAUSE_NANOS;
      if (!check.hasCard && !check.isUnderWay && now - check.asked >= pause) {
        check.isUnderWay = true;
        check.asked = now;
        lookUps.execute(() -> lookUp(peer, check));
      }
      all.add(check);
    });
    return all;
  }

  private void lookUp(PeerKey peer, CardCheck check) {
    try {
      cards.lookUp(peer, check.asked, check);
    } catch (Exception e) {
      LOG.debug("{} has no card", peer, e);
      check.missing(e);
    }
  }
}
