package io.faro.spark.service;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Collections;
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
final class NodeServices {
  private static final Logger LOG = LoggerFactory.getLogger(NodeServices.class);
  private static final int TOKEN_BYTES = 32;
  private static final byte[] NOTHING = new byte[0];

  private final byte[] token = new byte[TOKEN_BYTES];
  // All that follows is guarded by this.
  private final HostList hosts = new HostList();
  /** By executor: the place of its host's service. Ended executors stay: their outputs do. */
  private final Map<String, Integer> places = new HashMap<>();
  /** Executors that a service has taken and that have not ended. */
  private final Set<String> running = new HashSet<>();
  /** By executor: its last word on outputs that no service keeps. */
  private final Map<String, UnkeptShuffles> unkept = new HashMap<>();
  /** By executor: the reason that was logged. */
  private final Map<String, String> reasons = new HashMap<>();
  /** Those that are not removed. */
  private final Set<Integer> shuffles = new HashSet<>();
  /** Those that Faro has no part in: their outputs are read by Spark's own fetch, from executors only. */
  private final Set<Integer> sparksShuffles = new HashSet<>();
  /** By executor: what answers when the application ends. */
  private final Map<String, Consumer<byte[]>> waiting = new HashMap<>();
  /** By executor: what answers when the list of services is newer than the executor's. */
  private final Map<String, Watcher> watching = new HashMap<>();
  private boolean ended;

  NodeServices() {
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
        List<Watcher> behind;
        synchronized (this) {
          int before = hosts.version();
          // Executors that ended before the service was restarted cannot tell its new card: it has their place.
          int known = hosts.place(kept[1]);
          int place = hosts.put(kept[0], kept[1]);
          places.replaceAll((executor, old) -> old == known ? place : old);
          places.put(message.executor, place);
          running.add(message.executor);
          behind = hosts.version() == before ? Collections.emptyList() : takeAll(watching);
        }
        answer.accept(NOTHING);
        behind.forEach(this::tell);
        return;
      case UNKEPT:
        unkept(message.executor, UnkeptShuffles.decode(message.bytes));
        answer.accept(NOTHING);
        return;
      case CARD:
        answer.accept(keptBy(message.executor));
        return;
      case HOSTS:
        watch(message, answer);
        return;
      case NEIGHBOURS:
        answer.accept(Message.names(neighbours(message.executor, Message.names(message.bytes))));
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

  private synchronized byte[] keptBy(String executor) {
    Integer place = places.get(executor);
    return place == null ? NOTHING : new KeptBy(place, hosts.card(place)).encode();
  }

  private synchronized List<String> neighbours(String executor, List<String> others) {
    Integer place = places.get(executor);
    List<String> found = new ArrayList<>();
    for (String other : others) {
      if (place != null && place.equals(places.get(other))) {
        found.add(other);
      }
    }
    return found;
  }

  private void watch(Message message, Consumer<byte[]> answer) throws IOException {
    if (message.bytes.length != 4) {
      throw new IOException("a version of " + message.bytes.length + " bytes");
    }
    Watcher watcher = new Watcher(ByteBuffer.wrap(message.bytes).getInt(), answer);
    synchronized (this) {
      if (!ended && hosts.version() <= watcher.known) {
        // A new question replaces one that the executor no longer waits for.
        watching.put(message.executor, watcher);
        return;
      }
    }
    tell(watcher);
  }

  private void tell(Watcher watcher) {
    byte[] changes;
    synchronized (this) {
      changes = ended ? NOTHING : hosts.changesAfter(watcher.known);
    }
    watcher.answer.accept(changes);
  }

  private static <T> List<T> takeAll(Map<String, T> from) {
    List<T> all = new ArrayList<>(from.values());
    from.clear();
    return all;
  }

  /** An executor that has version {@code known} of the list. */
  private static final class Watcher {
    final int known;
    final Consumer<byte[]> answer;

    Watcher(int known, Consumer<byte[]> answer) {
      this.known = known;
      this.answer = answer;
    }
  }

  private synchronized void unkept(String executor, UnkeptShuffles now) {
    UnkeptShuffles before = unkept.get(executor);
    if (before != null && before.number >= now.number) {
      return;
    }
    boolean wasReliable = reliable();
    unkept.put(executor, now);
    if (!now.isEmpty() && !now.why.equals(reasons.put(executor, now.why))) {
      LOG.info("Faro: outputs of executor {} are lost with it, because no service keeps them: {}. Until one does, or "
          + "their shuffles are removed, Spark computes the outputs of each lost executor again", executor, now.why);
    }
    if (!wasReliable && reliable()) {
      reasons.clear();
      LOG.info("Faro: all map outputs outlive their executors again");
    }
  }

  /** A shuffle is registered; {@code sparks}: Faro has no part in it. */
  synchronized void registered(int shuffle, boolean sparks) {
    shuffles.add(shuffle);
    if (sparks) {
      sparksShuffles.add(shuffle);
    }
  }

  /** A shuffle was removed, and its outputs with it. */
  synchronized void shuffleRemoved(int shuffle) {
    shuffles.remove(shuffle);
    sparksShuffles.remove(shuffle);
    // An executor that has ended reports nothing again.
    unkept.entrySet().removeIf(
        one -> !running.contains(one.getKey()) && !one.getValue().hasAnyOf(shuffles));
  }

  /** Returns whether each output of each known executor outlives it. */
  synchronized boolean reliable() {
    return sparksShuffles.isEmpty() && unkept.values().stream().noneMatch(one -> one.hasAnyOf(shuffles));
  }

  /** Not answered any more: its connection is closed, and Spark's RPC would log an error. */
  synchronized void removed(String executor) {
    running.remove(executor);
    reasons.remove(executor);
    waiting.remove(executor);
    watching.remove(executor);
  }

  /** The cards of services of hosts where the application has no executor any more. */
  synchronized byte[][] cardsOfEmptyHosts() {
    Set<Integer> used = new HashSet<>();
    for (String executor : running) {
      used.add(places.get(executor));
    }
    return hosts.places().filter(place -> !used.contains(place)).mapToObj(hosts::card).toArray(byte[][]::new);
  }

  /** The executors tell their services. */
  void end() {
    List<Consumer<byte[]>> all;
    List<Watcher> watchers;
    synchronized (this) {
      ended = true;
      all = takeAll(waiting);
      watchers = takeAll(watching);
    }
    all.forEach(answer -> answer.accept(NOTHING));
    watchers.forEach(this::tell);
  }
}
