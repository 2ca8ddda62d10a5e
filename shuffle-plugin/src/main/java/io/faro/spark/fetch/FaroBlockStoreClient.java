package io.faro.spark.fetch;

import com.codahale.metrics.MetricSet;
import io.faro.BlockIds;
import io.faro.Nullable;
import io.faro.spark.conf.ChannelSecurity;
import io.faro.spark.conf.FaroConf;
import io.faro.spark.metrics.Reason;
import io.faro.spark.peers.PeerKey;
import io.faro.spark.read.groups.BlockListener;
import io.faro.spark.read.groups.PartClient;
import io.faro.spark.read.places.Parts;
import io.faro.spark.transport.BlockNames;
import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
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
    BlockIds ids = detached ? null : BlockNames.parse(blockIds);
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
      new FileFetch(sources, peer, ids, blockIds, listener, files, task, toFile, fallBack).start();
      return;
    }
    int max = sources.maxBlocks();
    for (int from = 0; from < blockIds.length; from += max) {
      String[] part = Arrays.copyOfRange(blockIds, from, Math.min(blockIds.length, from + max));
      sources.start(peer, ids.range(from, part.length), new NamedBlocks(peer, part, listener, fallBack), task);
    }
  }

  @Override
  public void fetch(String host, int port, String executor, Parts parts, BlockListener listener) {
    TaskFetches.Task task = detached ? null : tasks.current();
    int max = sources.maxBlocks();
    PeerKey peer = new PeerKey(executor, host, port);
    for (int from = 0; from < parts.count(); from += max) {
      BlockIds ids = parts.ids.range(from, Math.min(max, parts.count() - from));
      PartListener named = new PartListener(peer, ids, from, listener, fallBack);
      if (detached && conf.security.forbidsSparksFetch) {
        refuse(peer, names(ids, all(ids)), named);
      } else if (detached) {
        spark.fetchBlocks(host, port, executor, names(ids, all(ids)), named, null);
      } else {
        sources.start(peer, ids, named, task);
      }
    }
  }

  @Override
  public void fetchAgain(String host, int port, String executor, Parts parts, BlockListener listener) {
    if (conf.never) {
      fetch(host, port, executor, parts, listener);
      return;
    }
    PeerKey peer = new PeerKey(executor, host, port);
    new PartListener(peer, parts.ids, 0, listener, fallBack).left(all(parts.ids), Reason.ASKED_AGAIN, null, true);
  }

  private static int[] all(BlockIds ids) {
    return IntStream.range(0, ids.count()).toArray();
  }

  private static String[] names(BlockIds ids, int[] at) {
    return Arrays.stream(at).mapToObj(ids::name).toArray(String[]::new);
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
  private static final class NamedBlocks implements BlockListener {
    private final PeerKey peer;
    private final String[] names;
    private final BlockFetchingListener listener;
    private final FallBack fallBack;

    NamedBlocks(PeerKey peer, String[] names, BlockFetchingListener listener, FallBack fallBack) {
      this.peer = peer;
      this.names = names;
      this.listener = listener;
      this.fallBack = fallBack;
    }

    @Override
    public void arrived(int at, ManagedBuffer data) {
      fallBack.give(listener, names[at], data);
    }

    @Override
    public void left(int[] at, Reason reason, Throwable cause, boolean onTaskThread) {
      String[] left = Arrays.stream(at).mapToObj(i -> names[i]).toArray(String[]::new);
      fallBack.take(new FallBack.UndeliveredBlocks(peer, left, listener, null, reason, cause), onTaskThread);
    }
  }

  /** The parts of one request: Faro delivers them by position, Spark's own fetch by name. */
  private static final class PartListener implements BlockFetchingListener, BlockListener {
    private final PeerKey peer;
    private final BlockIds ids;
    /** Number of the first part at the listener. */
    private final int first;
    private final BlockListener listener;
    private final FallBack fallBack;
    /** Guarded by this; null until Spark's own fetch delivers a part. */
    @Nullable private Map<String, Integer> positions;

    PartListener(PeerKey peer, BlockIds ids, int first, BlockListener listener, FallBack fallBack) {
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
      String[] left = names(ids, at);
      fallBack.take(new FallBack.UndeliveredBlocks(peer, left, this, null, reason, cause), onTaskThread);
    }

    @Override
    public boolean verifies() {
      return listener.verifies();
    }

    @Override
    public void onBlockFetchSuccess(String block, ManagedBuffer data) {
      // The caller releases its own reference.
      data.retain();
      arrived(position(block), data);
    }

    @Override
    public void onBlockFetchFailure(String block, Throwable cause) {
      listener.left(new int[] {first + position(block)}, null, cause, false);
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
