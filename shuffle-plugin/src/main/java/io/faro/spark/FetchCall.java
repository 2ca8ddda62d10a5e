package io.faro.spark;

import io.faro.spark.ui.Tally;
import java.util.BitSet;
import java.util.concurrent.TimeoutException;
import java.util.function.LongSupplier;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.shuffle.BlockFetchingListener;
import org.apache.spark.network.shuffle.DownloadFileManager;

/**
 * One request to one peer, from the wait for its card to the last block. Spark's iterator does not notice a block that
 * comes twice (it would be data twice), so a block is <em>claimed</em> before it is given to anyone, once: by its
 * delivery, or at the end by the fall-back, which claims all that is left. What comes after is dropped; nothing has
 * been taken from its batch, so nothing leaks. A request that ends in a fault leaves its delivered blocks delivered.
 */
final class FetchCall implements FaroTransport.Sink, Peers.Waiter {
  /** What a request needs of its client. */
  interface Owner {
    /** Gives a block to Spark and drops the reference to it. */
    void deliver(FetchCall call, String block, ManagedBuffer data);

    /** A block that came could not be taken. */
    void lost(FetchCall call, String block, Throwable cause);

    /** The request is over; {@code left} has the blocks that nobody was given. Called once. */
    void ended(FetchCall call, String[] left, Reason reason, Throwable cause, boolean here);
  }

  final PeerKey peer;
  final BlockFetchingListener listener;
  /** {@code null}: blocks stay in memory. */
  final DownloadFileManager files;
  /** What was delivered. */
  final Tally tally = new Tally();

  private final String[] blocks;
  private final ShuffleIds ids;
  private final FaroTransport transport;
  private final Owner owner;
  private final PluginCounters counters;
  private final LongSupplier nanos;
  private final BitSet claimed;
  private boolean ended;
  private Reason reason;
  private Throwable cause;
  private volatile long lastSign;
  private volatile long startedAt;
  private volatile boolean started;
  private volatile FaroTransport.Fetch fetch;

  FetchCall(PeerKey peer, String[] blocks, ShuffleIds ids, BlockFetchingListener listener, DownloadFileManager files,
      FaroTransport transport, Owner owner, PluginCounters counters, LongSupplier nanos) {
    this.peer = peer;
    this.blocks = blocks;
    this.ids = ids;
    this.listener = listener;
    this.files = files;
    this.transport = transport;
    this.owner = owner;
    this.counters = counters;
    this.nanos = nanos;
    this.claimed = new BitSet(blocks.length);
    this.lastSign = nanos.getAsLong();
  }

  @Override
  public void go(long peerHandle) {
    lastSign = nanos.getAsLong();
    startedAt = lastSign;
    started = true;
    try {
      fetch = transport.fetch(peerHandle, ids, this);
    } catch (Throwable e) {
      note(Reason.of(e), e);
      end(false);
    }
  }

  @Override
  public void decline(Reason why, Throwable problem, boolean here) {
    note(why, problem);
    end(here);
  }

  @Override
  public void onBlocks(FaroTransport.Batch batch) {
    lastSign = nanos.getAsLong();
    for (int i = 0; i < batch.count(); i++) {
      int at = batch.first() + i;
      String problem = batch.problem(i);
      if (at < 0 || at >= blocks.length) {
        note(Reason.PROTOCOL, new IllegalStateException("block " + at + " of a request for " + blocks.length));
      } else if (problem != null) {
        note(Reason.BLOCK_STATUS, new IllegalStateException(blocks[at] + ": " + problem));
      } else if (claim(at)) {
        deliver(batch, i, at);
      } else {
        counters.lateBlocks.increment();
      }
    }
  }

  private void deliver(FaroTransport.Batch batch, int i, int at) {
    ManagedBuffer data;
    try {
      data = batch.take(i);
    } catch (Throwable e) {
      owner.lost(this, blocks[at], e);
      return;
    }
    tally.block(batch.fabric(), data.size());
    owner.deliver(this, blocks[at], data);
  }

  @Override
  public void onError(int first, int count, Throwable error) {
    lastSign = nanos.getAsLong();
    note(Reason.of(error), error);
  }

  @Override
  public void onComplete() {
    end(false);
  }

  /** The shuffle that the blocks are of; Spark asks for those of one shuffle at a time. */
  int shuffle() {
    return ids.shuffle(0);
  }

  /** Since it was given to the transport; negative: it never was. */
  long nanosUnderWay() {
    return started ? nanos.getAsLong() - startedAt : -1;
  }

  /** Gives up a request that has given no sign of life for so long. */
  void giveUpIfSilent(long longest) {
    if (nanos.getAsLong() - lastSign < longest) {
      return;
    }
    note(Reason.UNRESPONSIVE, new TimeoutException("no sign of life from the native library for "
        + longest / 1_000_000_000L + " s"));
    FaroTransport.Fetch running = fetch;
    end(false);
    if (running != null) {
      running.cancel();
    }
  }

  /** The first problem is the one that is told; later ones tend to follow from it. */
  private synchronized void note(Reason why, Throwable problem) {
    if (reason == null) {
      reason = why;
      cause = problem;
    }
  }

  private synchronized boolean claim(int at) {
    if (ended || claimed.get(at)) {
      return false;
    }
    claimed.set(at);
    return true;
  }

  private void end(boolean here) {
    String[] left;
    Reason why;
    Throwable problem;
    synchronized (this) {
      if (ended) {
        return;
      }
      ended = true;
      left = unclaimed();
      why = left.length > 0 && reason == null ? Reason.PROTOCOL : reason;
      problem = cause;
    }
    owner.ended(this, left, why, problem, here);
  }

  private String[] unclaimed() {
    String[] left = new String[blocks.length - claimed.cardinality()];
    for (int i = claimed.nextClearBit(0), n = 0; n < left.length; i = claimed.nextClearBit(i + 1)) {
      left[n++] = blocks[i];
    }
    return left;
  }
}
