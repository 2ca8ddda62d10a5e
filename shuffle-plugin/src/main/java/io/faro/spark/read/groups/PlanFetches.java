package io.faro.spark.read.groups;

import io.faro.Nullable;
import io.faro.spark.read.groups.GroupFetch.GroupBuffer;
import io.faro.spark.read.groups.GroupFetch.GroupBuffer.GroupStream;
import io.faro.spark.read.places.BlockPlaces;
import io.faro.spark.read.places.LentFiles;
import io.faro.spark.read.places.LentFiles.LentPart;
import io.faro.spark.read.places.LentFiles.RefusedLoans;
import io.faro.spark.read.places.LocalFiles;
import io.faro.spark.read.places.LocalFiles.HostFiles;
import io.faro.spark.read.places.LocalFiles.OwnFiles;
import io.faro.spark.read.places.Parts;
import io.faro.spark.read.places.ReadPlan;
import java.io.InputStream;
import java.util.Collections;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.function.Function;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.storage.ShuffleBlockFetcherIterator;
import org.apache.spark.util.SystemClock;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.JavaConverters;
import scala.runtime.AbstractFunction2;

/**
 * What a reader fetches, by Spark's iterator with its limits and retries: first what its plan says, from the start on;
 * then, when all files were read, the parts that lent files did not give.
 */
public final class PlanFetches {
  private final ReaderContext shared;
  private final int shuffle;
  private final BlockManager blocks;
  private final TaskContext context;
  private final ShuffleReadMetricsReporter metrics;
  private final ReaderEnd end;
  private final RefusedLoans notLent = new RefusedLoans();
  /** Null if none is under way. */
  @Nullable private FetchedBlocks current;

  private PlanFetches(ReaderContext shared, int shuffle, BlockManager blocks, TaskContext context,
      ShuffleReadMetricsReporter metrics, ReaderEnd end) {
    this.shared = shared;
    this.shuffle = shuffle;
    this.blocks = blocks;
    this.context = context;
    this.metrics = metrics;
    this.end = end;
  }

  /**
   * Gives the parts in files of this host to {@code local}, and starts to fetch the others. {@code records} and the
   * requests end with {@code end}, at the latest with the task.
   */
  public static PlanFetches start(ReaderContext shared, ReadPlan plan, BlockManager blocks, TaskContext context,
      ShuffleReadMetricsReporter metrics, ReaderEnd.Records records, ReaderEnd end,
      BiConsumer<Parts, LocalFiles> local) {
    PlanFetches fetches = new PlanFetches(shared, plan.own.shuffle, blocks, context, metrics, end);
    end.begin(records);
    boolean started = false;
    try {
      local.accept(plan.own, new OwnFiles(blocks, shared.outputs, shared.endpoint));
      plan.host.forEach((address, parts) -> local.accept(parts, new HostFiles(address, blocks, shared.outputs,
          shared.endpoint, shared.directories.of(address, blocks, context))));
      plan.lent.forEach((address, parts) -> local.accept(
          parts, new LentFiles(address, shared.lender, LentPart.Files.of(shared.endpoint), fetches.notLent)));
      fetches.fetch(plan);
      started = true;
      return fetches;
    } finally {
      if (!started) {
        end.run();
      }
    }
  }

  private void fetch(ReadPlan plan) {
    if (!plan.fetched.isEmpty()) {
      GroupFetch client = shared.fetch(blocks, plan);
      end.fetches(client);
      current = new FetchedBlocks(plan, client, shared.conf, blocks, context, metrics);
    }
    // A task's listeners run in the reverse order: the records let go of fetched bytes before Spark's iterator, which
    // has registered its own by now, releases them.
    context.addTaskCompletionListener(end);
  }

  /**
   * Fetches one part, beside what is under way, waits for it, and makes a source of it. Nothing of it has to be given
   * up when the reader ends: a group of one part is handed over to Spark's iterator when it arrives.
   */
  public <S> S one(BlockManagerId address, Parts part, SecondFetch secondFetch, PartFailure failure,
      Function<FetchedGroup, S> ofGroup, Function<StreamPart, S> ofPart) {
    ReadPlan plan = ReadPlan.of(shuffle, Collections.singletonMap(address, part),
        BlockPlaces.overTheNetwork(blocks), shared.conf.limits());
    GroupFetch client = shared.fetch(blocks, plan);
    FetchedBlocks fetched = new FetchedBlocks(plan, client, shared.conf, blocks, context, metrics);
    // See fetch: before Spark's iterator.
    context.addTaskCompletionListener(end);
    return fetched.next(secondFetch, failure, ofGroup, ofPart);
  }

  /**
   * Waits for the next block, and makes a source of it: of a group, or of the stream of a part; null if there are
   * none left. To be called when all files were read, as the rest is known then.
   */
  @Nullable public <S> S next(SecondFetch secondFetch, PartFailure failure, Function<FetchedGroup, S> ofGroup,
      Function<StreamPart, S> ofPart) {
    while (true) {
      S source = current == null ? null : current.next(secondFetch, failure, ofGroup, ofPart);
      if (source != null) {
        return source;
      }
      current = null;
      if (notLent.isEmpty()) {
        return null;
      }
      Map<BlockManagerId, Parts> rest = notLent.take();
      fetch(ReadPlan.of(shuffle, rest, BlockPlaces.overTheNetwork(blocks), shared.conf.limits()));
    }
  }

  /** Iterates over a plan's groups and blocks from files by Spark's own fetch iterator, with its limits and retries. */
  static final class FetchedBlocks {
    private final ReadPlan plan;
    private final ShuffleReadMetricsReporter metrics;
    /** At its end Spark's iterator lets go of everything. */
    private final Iterator<Tuple2<BlockId, InputStream>> blocks;
    /** The stream that the iterator was about to hand over. */
    private InputStream raw;

    /** Requests are under way from here on; {@code client} is asked for them. */
    FetchedBlocks(ReadPlan plan, GroupFetch client, ReaderConf conf, BlockManager manager, TaskContext context,
        ShuffleReadMetricsReporter metrics) {
      this.plan = plan;
      this.metrics = metrics;
      blocks = new ShuffleBlockFetcherIterator(context, client, manager, SparkEnv.get().mapOutputTracker(),
          JavaConverters.asScalaIterator(plan.fetched.iterator()),
          new AbstractFunction2<BlockId, InputStream, InputStream>() {
            @Override
            public InputStream apply(BlockId id, InputStream stream) {
              raw = stream;
              return stream;
            }
          },
          conf.maxBytesInFlight, conf.maxRequestsInFlight, conf.maxGroupsPerAddress(), conf.maxBytesToMemory,
          conf.nettyAttempts,
          // The reader finds what is corrupt, and names the part.
          false, false, false, "ADLER32", metrics, false, new SystemClock()).toCompletionIterator();
    }

    /**
     * Waits for the next block, and makes a source of it: of a group, or of the stream of a part that the iterator
     * reads from a file. Null if there are none left.
     */
    @Nullable <S> S next(SecondFetch secondFetch, PartFailure failure, Function<FetchedGroup, S> ofGroup,
        Function<StreamPart, S> ofPart) {
      if (!blocks.hasNext()) {
        return null;
      }
      Tuple2<BlockId, InputStream> block = blocks.next();
      // Closing the stream tells the iterator that the block, or the group, was read.
      InputStream stream = block._2();
      if (raw instanceof GroupStream) {
        GroupBuffer group = ((GroupStream) raw).buffer;
        // The iterator has counted the group as one block.
        metrics.incRemoteBlocksFetched(group.group.parts.count() - 1L);
        return ofGroup.apply(new FetchedGroup(group, stream, secondFetch, failure));
      }
      Tuple2<BlockManagerId, Parts> part = plan.stream(block._1().name());
      return ofPart.apply(new StreamPart(stream, part._1(), part._2(), failure));
    }
  }
}
