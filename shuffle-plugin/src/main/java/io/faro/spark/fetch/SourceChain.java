package io.faro.spark.fetch;

import io.faro.BlockIds;
import io.faro.Nullable;
import io.faro.spark.metrics.PluginCounters;
import io.faro.spark.metrics.Reason;
import io.faro.spark.peers.PeerKey;
import io.faro.spark.peers.Peers;
import io.faro.spark.peers.ReplicaCards;
import io.faro.spark.read.groups.BlockListener;
import io.faro.spark.service.ServiceHosts;
import io.faro.spark.transport.FaroTransport;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.LongSupplier;
import org.apache.spark.network.buffer.ManagedBuffer;

/**
 * The sources of an executor's blocks, in the order in which they are asked: the node service of its host, the
 * executor, and the services that have copies. What one source leaves is asked from the next, and what the last one
 * leaves is the request's own, which gives it to Spark's fetch. Has the requests under way.
 */
public final class SourceChain {
  private final FaroTransport transport;
  private final Link[] links;
  /** Place of the executor in the chain: its reason is the one that is reported. */
  private final int executor;
  private final PluginCounters counters;
  private final LongSupplier nanos;
  private final Set<FetchCall> calls = ConcurrentHashMap.newKeySet();

  /** The services that have copies, and which of them has which. */
  public static final class Replicas {
    private final Peers peers;
    private final ServiceHosts hosts;

    public Replicas(Peers peers, ServiceHosts hosts) {
      this.peers = peers;
      this.hosts = hosts;
    }
  }

  /** {@code services}: of executors' hosts, if there are any; {@code replicas}: null if there are no copies. */
  public SourceChain(FaroTransport transport, Peers executors, @Nullable Peers services, @Nullable Replicas replicas,
      PluginCounters counters, LongSupplier nanos) {
    this.transport = transport;
    this.counters = counters;
    this.nanos = nanos;
    Link last = new Link(new PeerSource(executors, PeerKey::toString, call -> { }),
        counters.executorBlocks, counters.executorBytes);
    if (services == null) {
      executor = 0;
      links = new Link[] {last};
      return;
    }
    executor = 1;
    // Another trouble than that of the executor.
    Link first = new Link(new PeerSource(services, peer -> "service of " + peer.host,
        call -> counters.traffic.fromService(call.peer.host, call.delivered)),
        counters.serviceBlocks, counters.serviceBytes);
    links = replicas == null ? new Link[] {first, last} : new Link[] {first, last, copies(replicas)};
  }

  private Link copies(Replicas replicas) {
    Source source = new ReplicaSource(replicas.hosts::copiesOf, (place, of, ids, task, listener) ->
        new PeerSource(replicas.peers, peer -> "service " + peer.port + " with copies of " + of.host,
            call -> counters.traffic.fromReplicas(of.host, call.delivered))
            .ask(ReplicaCards.peer(place), ids, task, listener));
    return new Link(source, counters.replicaBlocks, counters.replicaBytes);
  }

  /** Maximum number of blocks of one request. */
  int maxBlocks() {
    return transport.maxBlocks();
  }

  /** Starts a request; {@code listener} gets all that becomes of it, maybe before this returns. */
  void start(PeerKey peer, BlockIds ids, BlockListener listener, TaskFetches.Task task) {
    // With a single source there is nothing to decide, and no figure that tells sources apart.
    Source first = links[0].source;
    first.ask(peer, ids, task, links.length == 1 ? listener : new Step(0, peer, ids, null, listener, task, true));
  }

  /** A source, and what counts what it brings. */
  private static final class Link {
    final Source source;
    final LongAdder blocks;
    final LongAdder bytes;

    Link(Source source, LongAdder blocks, LongAdder bytes) {
      this.source = source;
      this.blocks = blocks;
      this.bytes = bytes;
    }
  }

  /** A request at one of the sources. */
  private final class Step implements BlockListener {
    private final int number;
    private final PeerKey peer;
    private final BlockIds ids;
    /** Places in the whole request; null if they are the same. */
    @Nullable private final int[] places;
    private final BlockListener listener;
    private final TaskFetches.Task task;
    /** The thread that asked is the task's. */
    private final boolean byTask;
    /** Why the executor did not bring these blocks, once it was asked. */
    private Reason reason;
    private Throwable cause;

    Step(int number, PeerKey peer, BlockIds ids, int[] places, BlockListener listener, TaskFetches.Task task,
        boolean byTask) {
      this.number = number;
      this.peer = peer;
      this.ids = ids;
      this.places = places;
      this.listener = listener;
      this.task = task;
      this.byTask = byTask;
    }

    @Override
    public void arrived(int at, ManagedBuffer data) {
      links[number].blocks.increment();
      links[number].bytes.add(data.size());
      listener.arrived(places == null ? at : places[at], data);
    }

    @Override
    public void left(int[] at, Reason why, Throwable problem, boolean onTaskThread) {
      boolean here = onTaskThread && byTask;
      int[] left = at.clone();
      for (int i = 0; places != null && i < left.length; i++) {
        left[i] = places[at[i]];
      }
      boolean reported = number <= executor;
      if (number + 1 == links.length) {
        listener.left(left, reported ? why : reason, reported ? problem : cause, here);
        return;
      }
      boolean all = at.length == ids.count();
      BlockIds rest = all ? ids : ids.subset(at);
      Step next = new Step(number + 1, peer, rest, all ? places : left, listener, task, here);
      next.reason = reported ? why : reason;
      next.cause = reported ? problem : cause;
      links[number + 1].source.ask(peer, rest, task, next);
    }

    @Override
    public boolean verifies() {
      return listener.verifies();
    }

    @Override
    public void abandoned() {
      listener.abandoned();
    }
  }

  /**
   * Peers of one kind, whose trouble is theirs alone, their names in the figures, and what counts the bytes of an ended
   * request.
   */
  private final class PeerSource implements Source, FetchCall.Client {
    private final Peers peers;
    private final Function<PeerKey, String> name;
    private final Consumer<FetchCall> count;

    PeerSource(Peers peers, Function<PeerKey, String> name, Consumer<FetchCall> count) {
      this.peers = peers;
      this.name = name;
      this.count = count;
    }

    @Override
    public void ask(PeerKey peer, BlockIds ids, TaskFetches.Task task, BlockListener listener) {
      FetchCall call = new FetchCall(peer, ids, listener, task, transport, this, counters, nanos);
      calls.add(call);
      if (task != null) {
        task.begin(call);
      }
      peers.whenReady(peer, call);
    }

    @Override
    public void ended(FetchCall call, Reason reason) {
      forget(call);
      if (reason == null) {
        peers.worked(call.peer);
      } else {
        peers.failed(call.peer, reason);
      }
    }

    @Override
    public void abandoned(FetchCall call) {
      counters.cancelledRequests.increment();
      forget(call);
    }

    private void forget(FetchCall call) {
      calls.remove(call);
      if (call.task != null) {
        call.task.ended(call);
      }
      long running = call.nanosRunning();
      if (running >= 0) {
        counters.traffic.ended(call.shuffle(), name.apply(call.peer), call.delivered, running);
      }
      count.accept(call);
    }
  }

  /** Ends requests without progress for {@code longestNanos}. */
  void endUnresponsive(long longestNanos) {
    for (FetchCall call : calls) {
      call.endIfUnresponsive(longestNanos);
    }
  }
}
