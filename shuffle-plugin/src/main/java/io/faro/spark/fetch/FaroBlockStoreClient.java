package io.faro.spark.fetch;

import com.codahale.metrics.MetricSet;
import io.faro.Nullable;
import io.faro.spark.conf.ChannelSecurity;
import io.faro.spark.conf.FaroConf;
import io.faro.spark.metrics.Reason;
import io.faro.spark.peers.PeerKey;
import io.faro.spark.read.groups.PartClient;
import io.faro.spark.read.places.Parts;
import io.faro.spark.transport.ShuffleIds;
import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.shuffle.BlockFetchingListener;
import org.apache.spark.network.shuffle.BlockPushingListener;
import org.apache.spark.network.shuffle.BlockStoreClient;
import org.apache.spark.network.shuffle.DownloadFileManager;
import org.apache.spark.network.shuffle.MergeFinalizerListener;
import org.apache.spark.network.shuffle.MergedBlocksMetaListener;
import org.apache.spark.network.shuffle.checksum.Cause;

/**
 * Spark's block client, except that it fetches shuffle blocks of other executors through Faro. Spark's fetch iterator
 * calls it, so all limits, metrics, checks and stage retries are Spark's, and so is the iterator's cost per block.
 * Requests that are not plain shuffle fetches, and blocks that Faro does not deliver, go to Spark's client.
 *
 * <p>The fields of the base class are not used: their types differ between Spark versions.
 */
public final class FaroBlockStoreClient extends BlockStoreClient implements PartClient {
  private final BlockStoreClient spark;
  private final boolean closesSpark;
  private final FaroConf conf;
  private final SourceChain sources;
  private final FallBack fallBack;
  private final DownloadFiles toFile;
  private final SparkShuffles sparks;
  private final TaskFetches tasks = new TaskFetches();
  private volatile boolean detached;
  private boolean closed;

  /** {@code closesSpark}: {@link #close} closes {@code spark} too. */
  public FaroBlockStoreClient(BlockStoreClient spark, boolean closesSpark, FaroConf conf, SourceChain sources,
      FallBack fallBack, DownloadFiles toFile, SparkShuffles sparks) {
    this.spark = spark;
    this.closesSpark = closesSpark;
    this.conf = conf;
    this.sources = sources;
    this.fallBack = fallBack;
    this.toFile = toFile;
    this.sparks = sparks;
  }

  @Override
  public void fetchBlocks(String host, int port, String execId, String[] blockIds, BlockFetchingListener listener,
      DownloadFileManager files) {
    ShuffleIds ids = detached ? null : ShuffleIds.parse(blockIds);
    if (ids == null || sparks.has(ids.shuffle(0))) {
      if (conf.security.forbidsSparksFetch) {
        refuse(new PeerKey(execId, host, port), blockIds, listener);
        return;
      }
      spark.fetchBlocks(host, port, execId, blockIds, listener, files);
      return;
    }
    PeerKey peer = new PeerKey(execId, host, port);
    TaskFetches.Task task = tasks.current();
    if (task != null && task.asksAgain(listener, ids) && !conf.never) {
      fallBack.take(new FallBack.UndeliveredBlocks(peer, blockIds, listener, files, Reason.ASKED_AGAIN, null), true);
      return;
    }
    if (files != null) {
      new FileFetch(sources, peer, ids, listener, files, task, toFile, fallBack).start();
      return;
    }
    int max = sources.maxBlocks();
    if (blockIds.length <= max) {
      sources.start(peer, ids, new ListenerReceiver(peer, ids, listener, fallBack), task);
      return;
    }
    for (int from = 0; from < blockIds.length; from += max) {
      ShuffleIds part = ShuffleIds.parse(
          Arrays.copyOfRange(blockIds, from, Math.min(blockIds.length, from + max)));
      sources.start(peer, part, new ListenerReceiver(peer, part, listener, fallBack), task);
    }
  }

  @Override
  public void fetch(String host, int port, String executor, Parts parts, PartClient.Listener listener) {
    TaskFetches.Task task = detached ? null : tasks.current();
    int max = sources.maxBlocks();
    PeerKey peer = new PeerKey(executor, host, port);
    for (int from = 0; from < parts.count(); from += max) {
      ShuffleIds ids = ShuffleIds.of(parts, from, Math.min(max, parts.count() - from));
      PartListener named = new PartListener(peer, ids, from, listener, fallBack);
      if (detached && conf.security.forbidsSparksFetch) {
        refuse(peer, ids.names(ids.all()), named);
      } else if (detached) {
        spark.fetchBlocks(host, port, executor, ids.names(ids.all()), named, null);
      } else {
        sources.start(peer, ids, named, task);
      }
    }
  }

  @Override
  public void fetchAgain(String host, int port, String executor, Parts parts, PartClient.Listener listener) {
    if (conf.never) {
      fetch(host, port, executor, parts, listener);
      return;
    }
    PeerKey peer = new PeerKey(executor, host, port);
    ShuffleIds ids = ShuffleIds.of(parts, 0, parts.count());
    new PartListener(peer, ids, 0, listener, fallBack).left(ids.all(), Reason.ASKED_AGAIN, null, true);
  }

  /** Blocks that Faro does not fetch (stopped, switched off, or merged) fail: Spark would fetch them in the clear. */
  private void refuse(PeerKey peer, String[] blocks, BlockFetchingListener listener) {
    IOException why = new IOException("blocks of " + peer + " that Faro does not fetch"
        + (detached ? ", because it has stopped here: " : ": ") + ChannelSecurity.FORBIDDEN);
    for (String block : blocks) {
      fallBack.fail(listener, block, why);
    }
  }

  /** Ends requests without progress for {@code longestNanos}. */
  public void endUnresponsive(long longestNanos) {
    sources.endUnresponsive(longestNanos);
  }

  /** From now on all requests go to Spark's own fetch. */
  public void detach() {
    detached = true;
  }

  @Override
  public void close() throws IOException {
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
    }
    detach();
    if (closesSpark) {
      spark.close();
    }
  }

  // The methods below delegate to Spark's client.

  @Override
  public Cause diagnoseCorruption(String host, int port, String execId, int shuffleId, long mapId, int reduceId,
      long checksum, String algorithm) {
    return spark.diagnoseCorruption(host, port, execId, shuffleId, mapId, reduceId, checksum, algorithm);
  }

  @Override
  public MetricSet shuffleMetrics() {
    return spark.shuffleMetrics();
  }

  @Override
  public void setAppAttemptId(String appAttemptId) {
    spark.setAppAttemptId(appAttemptId);
  }

  @Override
  public String getAppAttemptId() {
    return spark.getAppAttemptId();
  }

  /** The base class checks fields here that this class does not use. */
  @Override
  protected void checkInit() {}

  @Override
  public void getHostLocalDirs(String host, int port, String[] execIds,
      CompletableFuture<Map<String, String[]>> dirs) {
    spark.getHostLocalDirs(host, port, execIds, dirs);
  }

  @Override
  public void pushBlocks(String host, int port, String[] blockIds, ManagedBuffer[] buffers,
      BlockPushingListener listener) {
    if (conf.security.forbidsSparksFetch) {
      throw new IllegalStateException("a push of shuffle blocks: " + ChannelSecurity.FORBIDDEN);
    }
    spark.pushBlocks(host, port, blockIds, buffers, listener);
  }

  @Override
  public void finalizeShuffleMerge(String host, int port, int shuffleId, int shuffleMergeId,
      MergeFinalizerListener listener) {
    spark.finalizeShuffleMerge(host, port, shuffleId, shuffleMergeId, listener);
  }

  @Override
  public void getMergedBlockMeta(String host, int port, int shuffleId, int shuffleMergeId, int reduceId,
      MergedBlocksMetaListener listener) {
    spark.getMergedBlockMeta(host, port, shuffleId, shuffleMergeId, reduceId, listener);
  }

  @Override
  public boolean removeShuffleMerge(String host, int port, int shuffleId, int shuffleMergeId) {
    return spark.removeShuffleMerge(host, port, shuffleId, shuffleMergeId);
  }

  /** Hands blocks to a listener of Spark's, in memory; what Faro does not deliver comes by the fall-back. */
  private static final class ListenerReceiver implements Source.Receiver {
    private final PeerKey peer;
    private final ShuffleIds ids;
    private final BlockFetchingListener listener;
    private final FallBack fallBack;

    ListenerReceiver(PeerKey peer, ShuffleIds ids, BlockFetchingListener listener, FallBack fallBack) {
      this.peer = peer;
      this.ids = ids;
      this.listener = listener;
      this.fallBack = fallBack;
    }

    @Override
    public void arrived(int at, ManagedBuffer data) {
      fallBack.give(listener, ids.name(at), data);
    }

    @Override
    public void left(int[] at, Reason reason, Throwable cause, boolean onTaskThread) {
      fallBack.take(new FallBack.UndeliveredBlocks(peer, ids.names(at), listener, null, reason, cause), onTaskThread);
    }

    @Override
    public void abandoned() {}
  }

  /** The parts of one request: Faro delivers them by position, Spark's own fetch by name. */
  private static final class PartListener implements BlockFetchingListener, Source.Receiver {
    private final PeerKey peer;
    private final ShuffleIds ids;
    /** Number of the first part at the listener. */
    private final int first;
    private final PartClient.Listener listener;
    private final FallBack fallBack;
    /** Guarded by this; null until Spark's own fetch delivers a part. */
    @Nullable private Map<String, Integer> positions;

    PartListener(PeerKey peer, ShuffleIds ids, int first, PartClient.Listener listener, FallBack fallBack) {
      this.peer = peer;
      this.ids = ids;
      this.first = first;
      this.listener = listener;
      this.fallBack = fallBack;
    }

    @Override
    public void arrived(int at, ManagedBuffer data) {
      listener.arrived(first + at, data);
    }

    @Override
    public void left(int[] at, Reason reason, Throwable cause, boolean onTaskThread) {
      fallBack.take(new FallBack.UndeliveredBlocks(peer, ids.names(at), this, null, reason, cause), onTaskThread);
    }

    @Override
    public void abandoned() {}

    @Override
    public void onBlockFetchSuccess(String block, ManagedBuffer data) {
      // The caller releases its own reference.
      data.retain();
      arrived(position(block), data);
    }

    @Override
    public void onBlockFetchFailure(String block, Throwable cause) {
      listener.failed(first + position(block), cause);
    }

    private synchronized int position(String block) {
      if (positions == null) {
        positions = new HashMap<>();
        for (int i = 0; i < ids.count(); i++) {
          positions.put(ids.name(i), i);
        }
      }
      return positions.get(block);
    }
  }
}
