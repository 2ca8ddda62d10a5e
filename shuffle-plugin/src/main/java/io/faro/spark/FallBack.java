package io.faro.spark;

import java.util.Arrays;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import org.apache.spark.network.shuffle.BlockFetchingListener;
import org.apache.spark.network.shuffle.BlockStoreClient;
import org.apache.spark.network.shuffle.DownloadFileManager;

/**
 * The last step of the failure order on this side: blocks that Faro did not bring go to Spark's own fetch, which
 * brings its own retries, or, with fallback=never, are reported as failed, which Spark turns into a FetchFailed.
 * Spark's fetch connects on the thread that calls it and may hold it for minutes, so it is called on threads of our
 * own. These are few; that their queue has no bound is Spark's own limits on requests in flight.
 */
final class FallBack {
  private final BlockStoreClient spark;
  private final Executor threads;
  private final boolean never;
  private final String fabric;
  private final PluginCounters counters;
  private final Notices notices;

  FallBack(BlockStoreClient spark, Executor threads, FaroConf conf, PluginCounters counters, Notices notices) {
    this.spark = spark;
    this.threads = threads;
    this.never = conf.never;
    this.fabric = conf.fabric;
    this.counters = counters;
    this.notices = notices;
  }

  /** One request's blocks that did not come, none of which has been given to the listener. */
  static final class Rest {
    final PeerKey peer;
    final String[] blocks;
    final BlockFetchingListener listener;
    final DownloadFileManager files;
    final Reason reason;
    final Throwable cause;

    Rest(PeerKey peer, String[] blocks, BlockFetchingListener listener, DownloadFileManager files, Reason reason,
        Throwable cause) {
      this.peer = peer;
      this.blocks = blocks;
      this.listener = listener;
      this.files = files;
      this.reason = reason;
      this.cause = cause;
    }
  }

  /** {@code here}: the calling thread is the task's, which Spark's own fetch may hold up as ever. */
  void take(Rest rest, boolean here) {
    if (never) {
      for (String block : rest.blocks) {
        fail(rest.listener, block, new FaroFetchException(block, rest, fabric));
      }
      return;
    }
    counters.fellBack(rest.reason, rest.blocks.length);
    ShuffleIds first = ShuffleIds.parse(Arrays.copyOf(rest.blocks, 1));
    if (first != null) {
      counters.traffic.fellBack(first.shuffle(0), rest.blocks.length);
    }
    warn(rest);
    if (here) {
      spark.fetchBlocks(
          rest.peer.host, rest.peer.port, rest.peer.executor, rest.blocks, rest.listener, rest.files);
      return;
    }
    try {
      threads.execute(() -> fetchBySpark(rest));
    } catch (RejectedExecutionException e) {
      failAll(rest, e);
    }
  }

  private void warn(Rest rest) {
    if (rest.reason == Reason.PEER_BACKOFF) {
      // Follows from a failure that was told.
      return;
    }
    String matter = rest.reason == Reason.TO_DISK ? rest.reason.key : rest.peer + " " + rest.reason.key;
    notices.say(matter, "Faro: " + rest.blocks.length + " blocks from " + rest.peer
        + " are left to Spark's own fetch, " + rest.reason.key
        + (rest.cause == null ? "" : " (" + rest.cause + ")") + ": " + rest.reason.hint);
  }

  private void fetchBySpark(Rest rest) {
    try {
      spark.fetchBlocks(
          rest.peer.host, rest.peer.port, rest.peer.executor, rest.blocks, rest.listener, rest.files);
    } catch (Throwable e) {
      // On a task's thread this would have failed the task; a failure after a success does as well, and never
      // makes a block count twice.
      failAll(rest, e);
    }
  }

  private void failAll(Rest rest, Throwable cause) {
    for (String block : rest.blocks) {
      fail(rest.listener, block, cause);
    }
  }

  void fail(BlockFetchingListener listener, String block, Throwable cause) {
    counters.failedBlocks.increment();
    try {
      listener.onBlockFetchFailure(block, cause);
    } catch (Throwable e) {
      notices.say("listener", "Faro: the listener for " + block + " threw " + e + " on being told that it failed");
    }
  }
}
