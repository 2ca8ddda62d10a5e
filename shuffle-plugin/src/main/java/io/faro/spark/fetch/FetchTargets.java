package io.faro.spark.fetch;

import io.faro.spark.metrics.PluginCounters;
import io.faro.spark.metrics.Reason;
import io.faro.spark.peers.PeerKey;
import io.faro.spark.peers.Peers;
import io.faro.spark.peers.ReplicaCards;
import io.faro.spark.service.ServiceHosts;
import io.faro.spark.transport.FaroTransport;
import io.faro.spark.transport.ShuffleIds;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.LongSupplier;

/**
 * Where the blocks of an executor are asked for: at the node service of its host, at the executor, and at the services
 * that have copies. Has the requests under way.
 */
public final class FetchTargets {
  private final FaroTransport transport;
  private final Target executors;
  /** The node services of executors' hosts; {@code null}: there are none. */
  private final Target services;
  /** The same services, as those that have copies of other hosts' outputs; {@code null}: there are no copies. */
  private final Replicas replicas;
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

  public FetchTargets(FaroTransport transport, Peers executors, Peers services, Replicas replicas,
      PluginCounters counters, LongSupplier nanos) {
    this.transport = transport;
    this.executors = new Target(executors, PeerKey::toString, call -> { });
    // Another trouble than that of the executor.
    this.services = services == null ? null
        : new Target(services, peer -> "service of " + peer.host,
            call -> counters.traffic.fromService(call.peer.host, call.delivered));
    this.replicas = replicas;
    this.counters = counters;
    this.nanos = nanos;
  }

  /** Maximum number of blocks of one request. */
  int maxBlocks() {
    return transport.maxBlocks();
  }

  /**
   * Starts a request, first to the node service of the executor's host if there may be one; {@code receiver} gets all
   * that becomes of it, maybe before this returns.
   */
  void start(PeerKey peer, ShuffleIds ids, Receiver receiver, TaskFetches.Task task) {
    if (services == null) {
      executors.start(peer, ids, receiver, task);
      return;
    }
    Receiver last = receiver;
    if (replicas != null) {
      Target copies = new Target(replicas.peers, place -> "service " + place.port + " with copies of " + peer.host,
          call -> counters.traffic.fromReplicas(peer.host, call.delivered));
      last = new ReplicaFetcher(ids, receiver, counters,
          (shuffle, map) -> replicas.hosts.copiesOf(peer.executor, shuffle, map),
          (place, part, from) -> copies.start(ReplicaCards.peer(place), part, from, task));
    }
    Receiver first = new NodeServiceFetcher(ids, last, counters,
        (rest, receives) -> executors.start(peer, rest, receives, task));
    services.start(peer, ids, first, task);
  }

  /**
   * One of the places: its peers, whose trouble is theirs alone, their names in the figures, and what counts the bytes
   * of an ended request.
   */
  private final class Target implements FetchCall.Client {
    private final Peers peers;
    private final Function<PeerKey, String> name;
    private final Consumer<FetchCall> count;

    Target(Peers peers, Function<PeerKey, String> name, Consumer<FetchCall> count) {
      this.peers = peers;
      this.name = name;
      this.count = count;
    }

    void start(PeerKey peer, ShuffleIds ids, Receiver receiver, TaskFetches.Task task) {
      FetchCall call = new FetchCall(peer, ids, receiver, task, transport, this, counters, nanos);
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
