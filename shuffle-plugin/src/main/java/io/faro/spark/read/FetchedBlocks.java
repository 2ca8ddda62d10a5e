package io.faro.spark.read;

import java.io.InputStream;
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

/** Iterates over a plan's groups and blocks from files by Spark's own fetch iterator, with its limits and retries. */
final class FetchedBlocks {
  private final ReadPlan plan;
  private final ShuffleReadMetricsReporter metrics;
  /** At its end Spark's iterator lets go of everything. */
  private final Iterator<Tuple2<BlockId, InputStream>> blocks;
  /** The stream that the iterator was about to hand over. */
  private InputStream raw;
  private Tuple2<BlockId, InputStream> block;

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
   * Waits for the next block, and makes a source of it: of a group, or of the stream of a part that the iterator reads
   * from a file. {@code null}: there are none left.
   */
  <S> S next(SecondFetch secondFetch, PartFailure failure, Function<FetchedGroup, S> ofGroup,
      Function<StreamPart, S> ofPart) {
    if (!advance()) {
      return null;
    }
    // Closing the stream tells the iterator that the block, or the group, was read.
    InputStream stream = block._2();
    GroupBuffer group = group();
    if (group != null) {
      return ofGroup.apply(new FetchedGroup(group, stream, secondFetch, failure));
    }
    Tuple2<BlockManagerId, Parts> part = plan.stream(block._1().name());
    return ofPart.apply(new StreamPart(stream, part._1(), part._2(), failure));
  }

  /** Waits for the next block; false: there are none left. */
  private boolean advance() {
    if (!blocks.hasNext()) {
      return false;
    }
    block = blocks.next();
    GroupBuffer group = group();
    if (group != null) {
      // The iterator has counted the group as one block.
      metrics.incRemoteBlocksFetched(group.group.parts.count() - 1L);
    }
    return true;
  }

  /** The group that came; {@code null}: a block came that the iterator reads from a file. */
  private GroupBuffer group() {
    return raw instanceof GroupStream ? ((GroupStream) raw).buffer : null;
  }
}
