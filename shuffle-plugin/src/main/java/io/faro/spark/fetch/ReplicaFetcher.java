package io.faro.spark.fetch;

import io.faro.spark.metrics.PluginCounters;
import io.faro.spark.metrics.Reason;
import io.faro.spark.transport.ShuffleIds;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.network.buffer.ManagedBuffer;

/**
 * Asks services of other hosts for what neither the node service of an executor's host nor the executor has brought of
 * a request. Which services may have a copy is calculated for each block; in each round every missing block is asked
 * from one of them. What no copy brings is left, with the reason why the executor did not bring it.
 */
final class ReplicaFetcher implements Receiver {
  /** Calculates the places of services that may have copies of an output, in the order in which to ask them. */
  interface Copies {
    int[] of(int shuffle, long map);
  }

  /** Asks the service at a place for blocks. */
  interface Next {
    void ask(int place, ShuffleIds ids, Receiver receiver);
  }

  private final ShuffleIds ids;
  private final Receiver receiver;
  private final PluginCounters counters;
  private final Copies copies;
  private final Next next;
  private final AtomicBoolean abandoned = new AtomicBoolean();

  ReplicaFetcher(ShuffleIds ids, Receiver receiver, PluginCounters counters, Copies copies, Next next) {
    this.ids = ids;
    this.receiver = receiver;
    this.counters = counters;
    this.copies = copies;
    this.next = next;
  }

  @Override
  public void arrived(int at, ManagedBuffer data) {
    receiver.arrived(at, data);
  }

  @Override
  public void left(String[] blocks, Reason reason, Throwable cause, boolean here) {
    int[] missing = ids.places(blocks);
    List<MissingBlock> wanted = new ArrayList<>();
    boolean any = false;
    for (int at : missing) {
      int[] order = copies.of(ids.shuffle(at), ids.map(at));
      any |= order.length > 0;
      wanted.add(new MissingBlock(at, order));
    }
    if (!any) {
      receiver.left(blocks, reason, cause, here);
      return;
    }
    new Search(reason, cause).ask(0, wanted);
  }

  @Override
  public void abandoned() {
    // Requests to several services may be under way.
    if (abandoned.compareAndSet(false, true)) {
      receiver.abandoned();
    }
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

  private final class Search {
    private final Reason reason;
    private final Throwable cause;

    Search(Reason reason, Throwable cause) {
      this.reason = reason;
      this.cause = cause;
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
        receiver.left(nowhere.stream().map(one -> ids.name(one.at)).toArray(String[]::new), reason, cause, false);
      }
      if (byPlace.isEmpty()) {
        return;
      }
      Round asked = new Round(this, round, wanted.size() - nowhere.size());
      byPlace.forEach((place, there) -> {
        ShuffleIds part = ids.subset(there.stream().mapToInt(one -> one.at).toArray());
        next.ask(place, part, new Part(asked, part, there));
      });
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
  private final class Part implements Receiver {
    private final Round round;
    private final ShuffleIds part;
    private final List<MissingBlock> wanted;

    Part(Round round, ShuffleIds part, List<MissingBlock> wanted) {
      this.round = round;
      this.part = part;
      this.wanted = wanted;
    }

    @Override
    public void arrived(int at, ManagedBuffer data) {
      counters.replicaBlocks.increment();
      counters.replicaBytes.add(data.size());
      receiver.arrived(wanted.get(at).at, data);
      round.settled(new ArrayList<>(), 1);
    }

    @Override
    public void left(String[] blocks, Reason why, Throwable problem, boolean here) {
      List<MissingBlock> left = new ArrayList<>();
      for (int at : part.places(blocks)) {
        left.add(wanted.get(at));
      }
      round.settled(left, left.size());
    }

    @Override
    public void abandoned() {
      ReplicaFetcher.this.abandoned();
    }
  }
}
