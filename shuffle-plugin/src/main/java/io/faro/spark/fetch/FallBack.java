package io.faro.spark.fetch;

import io.faro.BlockIds;
import io.faro.spark.conf.FaroConf;
import io.faro.spark.metrics.PluginCounters;
import io.faro.spark.metrics.Reason;
import io.faro.spark.peers.PeerKey;
import io.faro.spark.peers.PerHost;
import io.faro.spark.transport.BlockNames;
import java.util.Arrays;
import java.util.concurrent.RejectedExecutionException;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.shuffle.BlockFetchingListener;
import org.apache.spark.network.shuffle.BlockStoreClient;
import org.apache.spark.network.shuffle.DownloadFileManager;

/**
 * Gives blocks that Faro did not deliver to Spark's own fetch, which has its own retries. Where that is not allowed
 * (fallback=never, security=required) it reports them as failed instead, which becomes a FetchFailed in Spark. Spark's
 * fetch connects on the calling thread, which can take minutes, so threads of their own call it, one for a host
 * ({@link PerHost}). Spark's limits on requests in flight bound the work that waits for them.
 */
public final class FallBack {
  private final BlockStoreClient spark;
  private final PerHost threads;
  private final boolean never;
  private final String why;
  private final String fabric;
  private final PluginCounters counters;
  private final RateLimitedLog log;

  public FallBack(BlockStoreClient spark, PerHost threads, FaroConf conf, PluginCounters counters, RateLimitedLog log) {
    this.spark = spark;
    this.threads = threads;
    this.never = conf.never;
    this.why = conf.why();
    this.fabric = conf.fabric;
    this.counters = counters;
    this.log = log;
  }

  /** Blocks of one request for which the listener has not been called. */
  static final class UndeliveredBlocks {
    final PeerKey peer;
    final String[] blocks;
    final BlockFetchingListener listener;
    final DownloadFileManager files;
    final Reason reason;
    final Throwable cause;

    UndeliveredBlocks(PeerKey peer, String[] blocks, BlockFetchingListener listener, DownloadFileManager files,
        Reason reason, Throwable cause) {
      this.peer = peer;
      this.blocks = blocks;
      this.listener = listener;
      this.files = files;
      this.reason = reason;
      this.cause = cause;
    }
  }

  /** {@code onTaskThread}: the calling thread is the task's, on which Spark's own fetch may block as without Faro. */
  void take(UndeliveredBlocks lost, boolean onTaskThread) {
    if (never) {
      for (String block : lost.blocks) {
        fail(lost.listener, block, new FaroFetchException(block, lost, fabric, why));
      }
      return;
    }
    counters.fellBack(lost.reason, lost.blocks.length);
    BlockIds first = BlockNames.parse(Arrays.copyOf(lost.blocks, 1));
    if (first != null) {
      counters.traffic.fellBack(first.shuffle(0), lost.blocks.length);
    }
    warn(lost);
    if (onTaskThread) {
      spark.fetchBlocks(
          lost.peer.host, lost.peer.port, lost.peer.executor, lost.blocks, lost.listener, lost.files);
      return;
    }
    try {
      threads.execute(lost.peer.host, () -> fetchBySpark(lost));
    } catch (RejectedExecutionException e) {
      failAll(lost, e);
    }
  }

  private void warn(UndeliveredBlocks lost) {
    if (lost.reason == Reason.PEER_BACKOFF || lost.reason == Reason.EXECUTOR_GONE) {
      // The failure that caused the back-off was logged; an executor that ends is nothing to warn of.
      return;
    }
    log.warn(lost.peer + " " + lost.reason.key, "Faro: " + lost.blocks.length + " blocks from " + lost.peer
        + " are left to Spark's own fetch, " + lost.reason.key
        + (lost.cause == null ? "" : " (" + lost.cause + ")") + ": " + lost.reason.hint);
  }

  private void fetchBySpark(UndeliveredBlocks lost) {
    try {
      spark.fetchBlocks(
          lost.peer.host, lost.peer.port, lost.peer.executor, lost.blocks, lost.listener, lost.files);
    } catch (Throwable e) {
      // On a task's thread this exception would fail the task, and so does a failure that is reported after a success.
      failAll(lost, e);
    }
  }

  private void failAll(UndeliveredBlocks lost, Throwable cause) {
    for (String block : lost.blocks) {
      fail(lost.listener, block, cause);
    }
  }

  /** Hands a block over that has arrived; takes over the reference. */
  void give(BlockFetchingListener listener, String block, ManagedBuffer data) {
    try {
      listener.onBlockFetchSuccess(block, data);
    } catch (Throwable e) {
      // The listener may have kept the block or not. Without a failure the task could wait for ever; a failure in
      // addition costs at most a retry.
      fail(listener, block, e);
    } finally {
      data.release();
    }
  }

  void fail(BlockFetchingListener listener, String block, Throwable cause) {
    counters.failedBlocks.increment();
    try {
      listener.onBlockFetchFailure(block, cause);
    } catch (Throwable e) {
      log.warn("listener", "Faro: the listener for " + block + " threw " + e + " when the block failed");
    }
  }
}
