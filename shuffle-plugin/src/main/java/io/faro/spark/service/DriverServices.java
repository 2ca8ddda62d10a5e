package io.faro.spark.service;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The driver's knowledge of node services: the token that proves the application to them, which service keeps the
 * outputs of which executor, also of one that has ended, and whether any executor's outputs are not kept.
 */
final class DriverServices {
  private static final Logger LOG = LoggerFactory.getLogger(DriverServices.class);
  private static final int TOKEN_BYTES = 32;
  private static final byte[] NOTHING = new byte[0];

  private final byte[] token = new byte[TOKEN_BYTES];
  // All that follows is guarded by this.
  /** By executor. Ended executors stay: their outputs do. */
  private final Map<String, byte[]> cards = new HashMap<>();
  /** Executors with outputs that no service keeps. */
  private final Set<String> notKept = new HashSet<>();
  /** By executor: what answers when the application ends. */
  private final Map<String, Consumer<byte[]>> waiting = new HashMap<>();
  private boolean hasSparksShuffles;
  private boolean ended;

  DriverServices() {
    new SecureRandom().nextBytes(token);
  }

  /**
   * Takes a message; {@code answer} is called once, now or when the application ends.
   *
   * @throws IOException the message is not whole, and is not answered
   */
  void take(Message message, Consumer<byte[]> answer) throws IOException {
    switch (message.kind) {
      case TOKEN:
        answer.accept(token.clone());
        return;
      case KEPT:
        byte[][] kept = message.cards();
        synchronized (this) {
          // Executors that ended before the service was restarted cannot tell its new card.
          cards.replaceAll((executor, card) -> Arrays.equals(card, kept[0]) ? kept[1] : card);
          cards.put(message.executor, kept[1]);
        }
        answer.accept(NOTHING);
        return;
      case NOT_KEPT:
        notKept(message.executor, new String(message.bytes, StandardCharsets.UTF_8));
        answer.accept(NOTHING);
        return;
      case CARD:
        byte[] card;
        synchronized (this) {
          card = cards.getOrDefault(message.executor, NOTHING);
        }
        answer.accept(card);
        return;
      case END:
        synchronized (this) {
          if (!ended) {
            // A new question replaces one that the executor no longer waits for.
            waiting.put(message.executor, answer);
            return;
          }
        }
        answer.accept(NOTHING);
        return;
      default:
        throw new AssertionError(message.kind);
    }
  }

  private synchronized void notKept(String executor, String why) {
    if (notKept.add(executor)) {
      LOG.info("Faro: outputs of executor {} are lost with it, because no service keeps them: {}. Until the end of "
          + "the application Spark computes the outputs of each lost executor again", executor, why);
    }
  }

  /** There is a shuffle that Faro has no part in: its outputs are read by Spark's own fetch, from executors only. */
  synchronized void hasSparksShuffles() {
    hasSparksShuffles = true;
  }

  /** Returns whether each output of each executor that was heard of outlives it. */
  synchronized boolean reliable() {
    return notKept.isEmpty() && !hasSparksShuffles;
  }

  /** Not answered any more: its connection is closed, and Spark's RPC would log an error. */
  synchronized void removed(String executor) {
    waiting.remove(executor);
  }

  /** The executors tell their services. */
  void end() {
    List<Consumer<byte[]>> all;
    synchronized (this) {
      ended = true;
      all = new ArrayList<>(waiting.values());
      waiting.clear();
    }
    all.forEach(answer -> answer.accept(NOTHING));
  }
}
