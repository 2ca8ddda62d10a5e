package io.faro.spark.fetch;

import io.faro.spark.metrics.PluginCounters;
import io.faro.spark.metrics.Reason;
import io.faro.spark.transport.ShuffleIds;
import org.apache.spark.network.buffer.ManagedBuffer;

/**
 * What the node service of an executor's host brings of a request. What it does not bring is asked from the executor.
 */
final class NodeServiceFetcher implements Receiver {
  /** Asks the executor for blocks. */
  interface Next {
    void ask(ShuffleIds ids, Receiver receiver);
  }

  private final ShuffleIds ids;
  private final Receiver receiver;
  private final PluginCounters counters;
  private final Next next;

  NodeServiceFetcher(ShuffleIds ids, Receiver receiver, PluginCounters counters, Next next) {
    this.ids = ids;
    this.receiver = receiver;
    this.counters = counters;
    this.next = next;
  }

  @Override
  public void arrived(int at, ManagedBuffer data) {
    counters.serviceBlocks.increment();
    counters.serviceBytes.add(data.size());
    receiver.arrived(at, data);
  }

  @Override
  public void left(String[] blocks, Reason reason, Throwable cause, boolean here) {
    if (blocks.length == ids.count()) {
      next.ask(ids, new RestReceiver(null, here));
      return;
    }
    int[] at = ids.places(blocks);
    next.ask(ids.subset(at), new RestReceiver(at, here));
  }

  @Override
  public void abandoned() {
    receiver.abandoned();
  }

  /** Receives what the executor brings. */
  private final class RestReceiver implements Receiver {
    /** Places in the whole request; {@code null}: the same. */
    private final int[] places;
    private final boolean byTask;

    /** {@code byTask}: the calling thread is the task's. */
    RestReceiver(int[] places, boolean byTask) {
      this.places = places;
      this.byTask = byTask;
    }

    @Override
    public void arrived(int at, ManagedBuffer data) {
      counters.executorBlocks.increment();
      counters.executorBytes.add(data.size());
      receiver.arrived(places == null ? at : places[at], data);
    }

    @Override
    public void left(String[] blocks, Reason reason, Throwable cause, boolean here) {
      receiver.left(blocks, reason, cause, here && byTask);
    }

    @Override
    public void abandoned() {
      receiver.abandoned();
    }
  }
}
