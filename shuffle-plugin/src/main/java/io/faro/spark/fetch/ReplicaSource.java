package io.faro.spark.fetch;

import io.faro.BlockIds;
import io.faro.spark.metrics.Reason;
import io.faro.spark.peers.PeerKey;
import io.faro.spark.read.groups.BlockListener;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.network.buffer.ManagedBuffer;

/**
 * Services of other hosts that may have copies of an executor's outputs. Which of them may have one is calculated for
 * each block; in each round every missing block is asked from one of them.
 */
final class ReplicaSource implements Source {
  /** Calculates the places of services that may have copies of an output, in the order in which to ask them. */
  interface Copies {
    int[] of(String executor, int shuffle, long map);
  }

  /** Asks the service at a place for blocks of an executor. */
  interface Services {
    void ask(int place, PeerKey of, BlockIds ids, TaskFetches.Task task, BlockListener listener);
  }

  private final Copies copies;
  private final Services services;

  ReplicaSource(Copies copies, Services services) {
    this.copies = copies;
    this.services = services;
  }

  @Override
  public void ask(PeerKey peer, BlockIds ids, TaskFetches.Task task, BlockListener listener) {
    List<MissingBlock> wanted = new ArrayList<>();
    boolean any = false;
    for (int at = 0; at < ids.count(); at++) {
      int[] order = copies.of(peer.executor, ids.shuffle(at), ids.map(at));
      any |= order.length > 0;
      wanted.add(new MissingBlock(at, order));
    }
    if (any) {
      new Search(peer, ids, task, listener).ask(0, wanted);
    } else {
      listener.left(places(wanted), null, null, true);
    }
  }

  private static int[] places(List<MissingBlock> blocks) {
    return blocks.stream().mapToInt(one -> one.at).toArray();
  }

  /** A missing block, and where copies of its output may be. */
  private static final class MissingBlock {
    final int at;
    final int[] order;

    MissingBlock(int at, int[] order) {
      this.at = at;
      this.order = order;
    }
  }

  /** One request. */
  private final class Search {
    private final PeerKey peer;
    private final BlockIds ids;
    private final TaskFetches.Task task;
    private final BlockListener listener;

    Search(PeerKey peer, BlockIds ids, TaskFetches.Task task, BlockListener listener) {
      this.peer = peer;
      this.ids = ids;
      this.task = task;
      this.listener = listener;
    }

    void ask(int round, List<MissingBlock> wanted) {
      Map<Integer, List<MissingBlock>> byPlace = new TreeMap<>();
      List<MissingBlock> nowhere = new ArrayList<>();
      for (MissingBlock one : wanted) {
        List<MissingBlock> there = round < one.order.length
            ? byPlace.computeIfAbsent(one.order[round], place -> new ArrayList<>()) : nowhere;
        there.add(one);
      }
      if (!nowhere.isEmpty()) {
        listener.left(places(nowhere), null, null, false);
      }
      if (byPlace.isEmpty()) {
        return;
      }
      Round asked = new Round(this, round, wanted.size() - nowhere.size());
      byPlace.forEach((place, there) ->
          services.ask(place, peer, ids.subset(places(there)), task, new Part(asked, there)));
    }
  }

  /** The requests of one round. When all their blocks have come or are left, the next one begins. */
  private static final class Round {
    private final Search search;
    private final int number;
    private final List<MissingBlock> missing = new ArrayList<>();
    private int open;

    Round(Search search, int number, int open) {
      this.search = search;
      this.number = number;
      this.open = open;
    }

    void settled(List<MissingBlock> left, int count) {
      synchronized (this) {
        missing.addAll(left);
        open -= count;
        if (open > 0 || missing.isEmpty()) {
          return;
        }
      }
      search.ask(number + 1, missing);
    }
  }

  /** Receives what one service brings. */
  private static final class Part implements BlockListener {
    private final Round round;
    private final List<MissingBlock> wanted;

    Part(Round round, List<MissingBlock> wanted) {
      this.round = round;
      this.wanted = wanted;
    }

    @Override
    public void arrived(int at, ManagedBuffer data) {
      round.search.listener.arrived(wanted.get(at).at, data);
      round.settled(new ArrayList<>(), 1);
    }

    @Override
    public void left(int[] at, Reason why, Throwable problem, boolean onTaskThread) {
      List<MissingBlock> left = new ArrayList<>();
      for (int one : at) {
        left.add(wanted.get(one));
      }
      round.settled(left, left.size());
    }

    @Override
    public void abandoned() {
      round.search.listener.abandoned();
    }
  }
}
