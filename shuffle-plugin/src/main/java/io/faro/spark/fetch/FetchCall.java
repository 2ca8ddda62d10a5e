package io.faro.spark.fetch;

import io.faro.BlockBatch;
import io.faro.BlockIds;
import io.faro.BlockStatus;
import io.faro.FetchException;
import io.faro.FetchListener;
import io.faro.Nullable;
import io.faro.spark.metrics.PluginCounters;
import io.faro.spark.metrics.Reason;
import io.faro.spark.metrics.RequestCounters;
import io.faro.spark.peers.PeerKey;
import io.faro.spark.peers.Peers;
import io.faro.spark.read.groups.BlockListener;
import io.faro.spark.transport.FaroManagedBuffer;
import io.faro.spark.transport.FaroTransport;
import java.util.BitSet;
import java.util.concurrent.TimeoutException;
import java.util.function.LongSupplier;
import org.apache.spark.network.buffer.ManagedBuffer;

/**
 * One request to one peer, from the wait for the peer's card to the last block. Spark's iterator does not detect a
 * block that is delivered twice, which would duplicate data. So each block is <em>claimed</em> once, before it is
 * delivered or at the end, when the fall-back claims all that are left. A block that arrives after that is not taken
 * out of its batch and so not leaked. Blocks that were delivered stay delivered when the request fails.
 */
final class FetchCall implements FetchListener, Peers.Waiter {
  /** Called when a request ends. */
  interface Client {
    /** Abandoned because the task ended. */
    void abandoned(FetchCall call);

    /** {@code reason}: why blocks were not delivered; null if all were. */
    void ended(FetchCall call, @Nullable Reason reason);
  }

  final PeerKey peer;
  final BlockIds ids;
  private final BlockListener listener;
  /** Null if it is not bound to a task. */
  @Nullable final TaskFetches.Task task;
  /** Counts delivered blocks. */
  final RequestCounters delivered = new RequestCounters();

  private final FaroTransport transport;
  private final Client client;
  private final PluginCounters counters;
  private final LongSupplier nanos;
  private final BitSet claimed;
  private volatile long lastProgress;
  // All that follows is guarded by this.
  private State state = State.WAITING;
  private Reason reason;
  private Throwable cause;
  private long startedAt;
  /** The peer's handle while the state is RUNNING. */
  private long peerHandle;
  /** The reason is one that the transport cannot see. */
  private boolean faultSeenHere;
  /** Ended by this executor, and not by the transport. */
  private boolean givenUp;
  /** From RUNNING to ENDED; -1 until then, or if it never ran. */
  private long nanosRunning = -1;
  /** Null until the transport has returned it. */
  @Nullable private FaroTransport.Fetch fetch;

  /** A request that is declined goes from WAITING to ENDED. */
  private enum State {
    /** For the peer's card. */
    WAITING,
    /** The transport has the request. */
    RUNNING,
    /** All blocks are claimed; later ones are dropped. */
    ENDED
  }

  FetchCall(PeerKey peer, BlockIds ids, BlockListener listener, TaskFetches.Task task, FaroTransport transport,
      Client client, PluginCounters counters, LongSupplier nanos) {
    this.peer = peer;
    this.ids = ids;
    this.listener = listener;
    this.task = task;
    this.transport = transport;
    this.client = client;
    this.counters = counters;
    this.nanos = nanos;
    this.claimed = new BitSet(ids.count());
    this.lastProgress = nanos.getAsLong();
  }

  @Override
  public void go(long handle) {
    if (!run(handle)) {
      return;
    }
    FaroTransport.Fetch begun;
    try {
      begun = transport.fetch(handle, ids, this, listener.verifies());
    } catch (Throwable e) {
      Reason why = Reason.of(e);
      note(why, e, why == Reason.OTHER);
      end(false);
      return;
    }
    if (!keep(begun)) {
      begun.cancel();
    }
  }

  /** WAITING to RUNNING; false: the request ended while it waited. */
  private synchronized boolean run(long handle) {
    if (state != State.WAITING) {
      return false;
    }
    lastProgress = nanos.getAsLong();
    startedAt = lastProgress;
    peerHandle = handle;
    state = State.RUNNING;
    return true;
  }

  /** False: the request was given up before the transport returned. */
  private synchronized boolean keep(FaroTransport.Fetch begun) {
    fetch = begun;
    return !givenUp;
  }

  @Override
  public void decline(Reason why, Throwable problem, boolean onTaskThread) {
    note(why, problem, false);
    end(onTaskThread);
  }

  @Override
  public void onBlocks(BlockBatch batch) {
    lastProgress = nanos.getAsLong();
    for (int i = 0; i < batch.count(); i++) {
      int at = batch.firstBlock() + i;
      BlockStatus status = batch.status(i);
      if (at < 0 || at >= ids.count()) {
        note(Reason.PROTOCOL, new IllegalStateException("block " + at + " of a request for " + ids.count()), true);
      } else if (status != BlockStatus.OK) {
        note(Reason.BLOCK_STATUS, new IllegalStateException(ids.name(at) + ": " + status.name()), false);
      } else if (claim(at)) {
        deliver(batch, i, at);
      } else {
        counters.lateBlocks.increment();
      }
    }
  }

  private void deliver(BlockBatch batch, int i, int at) {
    ManagedBuffer data;
    try {
      data = FaroManagedBuffer.of(batch, i);
    } catch (Throwable e) {
      listener.left(new int[] {at}, Reason.OTHER, e, false);
      return;
    }
    delivered.block(batch.fabric(), data.size(), ids.piece(at) <= 1);
    listener.arrived(at, data);
  }

  @Override
  public void onError(int firstBlock, int blockCount, FetchException error) {
    lastProgress = nanos.getAsLong();
    note(Reason.of(error), error, false);
  }

  @Override
  public void onComplete() {
    end(false);
  }

  /** The shuffle of the blocks; one request of Spark has blocks of one shuffle. */
  int shuffle() {
    return ids.shuffle(0);
  }

  /** Returns how long the ended request was in the transport; -1: it was not. */
  synchronized long nanosRunning() {
    return nanosRunning;
  }

  /** Ends the request if it has made no progress for {@code longest} nanoseconds. */
  void endIfUnresponsive(long longest) {
    if (nanos.getAsLong() - lastProgress < longest) {
      return;
    }
    note(Reason.UNRESPONSIVE, new TimeoutException("no answer from the native library for "
        + longest / 1_000_000_000L + " s"), true);
    end(false);
    cancel();
  }

  /** The task is over: ends the request, if it has not ended, and delivers no more blocks. */
  void abandon() {
    synchronized (this) {
      if (state == State.ENDED) {
        return;
      }
      stopClock();
    }
    client.abandoned(this);
    listener.abandoned();
    cancel();
  }

  private void cancel() {
    FaroTransport.Fetch running;
    synchronized (this) {
      givenUp = true;
      running = fetch;
    }
    if (running != null) {
      running.cancel();
    }
  }

  /** To ENDED. */
  private void stopClock() {
    if (state == State.RUNNING) {
      nanosRunning = nanos.getAsLong() - startedAt;
    }
    state = State.ENDED;
  }

  /** Keeps the first problem; later ones are often its consequences. */
  private synchronized void note(Reason why, Throwable problem, boolean seenHere) {
    if (reason == null) {
      reason = why;
      cause = problem;
      faultSeenHere = seenHere;
    }
  }

  private synchronized boolean claim(int at) {
    if (state == State.ENDED || claimed.get(at)) {
      return false;
    }
    claimed.set(at);
    return true;
  }

  private void end(boolean onTaskThread) {
    int[] left;
    Reason why;
    Throwable problem;
    boolean blames;
    synchronized (this) {
      if (state == State.ENDED) {
        return;
      }
      stopClock();
      left = unclaimed();
      if (left.length > 0) {
        note(Reason.PROTOCOL, null, true);
      }
      why = reason;
      problem = cause;
      blames = left.length > 0 && faultSeenHere;
    }
    if (blames) {
      transport.blame(peerHandle);
    }
    client.ended(this, left.length == 0 ? null : why);
    if (left.length > 0) {
      listener.left(left, why, problem, onTaskThread);
    }
  }

  private int[] unclaimed() {
    int[] left = new int[ids.count() - claimed.cardinality()];
    for (int i = claimed.nextClearBit(0), n = 0; n < left.length; i = claimed.nextClearBit(i + 1)) {
      left[n++] = i;
    }
    return left;
  }
}
