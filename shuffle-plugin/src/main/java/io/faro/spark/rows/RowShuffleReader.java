package io.faro.spark.rows;

import io.faro.rows.MemorySlices;
import io.faro.rows.RowReader;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayDeque;
import java.util.Deque;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.storage.ShuffleBlockFetcherIterator;
import org.apache.spark.util.SystemClock;
import org.apache.spark.util.TaskCompletionListener;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Function2;
import scala.Product2;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.JavaConverters;
import scala.runtime.AbstractFunction2;

/**
 * Reads the rows of some partitions of a shuffle. Spark's fetch iterator fetches what is not on this host, with all its
 * limits and retries; the bytes are decoded where they lie.
 */
final class RowShuffleReader<K, C> implements ShuffleReader<K, C> {
  private static final Logger LOG = LoggerFactory.getLogger(RowShuffleReader.class);

  private final RowReaders readers;
  private final ReadPlan plan;
  private final int fields;
  private final TaskContext context;
  private final ShuffleReadMetricsReporter metrics;
  private final BlockManager blocks = SparkEnv.get().blockManager();
  private final PartFailure failure;
  private final MemorySlices slices = new MemorySlices();
  private final StreamInput.Chunk chunk = new StreamInput.Chunk();
  private final Deque<Input> local = new ArrayDeque<>();
  private ShuffleBlockFetcherIterator fetched;
  /** The stream that the iterator was about to hand over. */
  private InputStream raw;

  RowShuffleReader(RowReaders readers, ReadPlan plan, int fields, TaskContext context,
      ShuffleReadMetricsReporter metrics) {
    this.readers = readers;
    this.plan = plan;
    this.fields = fields;
    this.context = context;
    this.metrics = metrics;
    this.failure = new PartFailure(blocks, readers.conf.checksum);
  }

  @Override
  public Iterator<Product2<K, C>> read() {
    RowReader reader = RowReader.open(readers.conf.codec);
    RowIterator<K, C> rows = new RowIterator<>(this::nextInput, reader, fields, context, metrics);
    GroupFetch client = new GroupFetch(blocks.blockStoreClient(), readers.client, plan.groups);
    context.addTaskCompletionListener((TaskCompletionListener) ended -> {
      try {
        rows.close();
      } catch (IOException e) {
        LOG.warn("Faro: a block of an ended task cannot be closed", e);
      } finally {
        client.close();
      }
    });
    addLocal(plan.own, new OwnFiles(blocks, readers.outputs));
    plan.host.forEach((address, parts) -> addLocal(
        parts, new HostFiles(address, blocks, readers.outputs, context, readers.directories)));
    if (!plan.fetched.isEmpty()) {
      // Requests are under way from here on.
      fetched = iterator(client);
    }
    return rows;
  }

  private void addLocal(Parts parts, LocalFiles files) {
    if (parts.count() > 0) {
      local.add(new FileInput(parts, readers.endpoint, files, failure, metrics, chunk));
    }
  }

  private ShuffleBlockFetcherIterator iterator(GroupFetch client) {
    ReaderConf conf = readers.conf;
    Function2<BlockId, InputStream, InputStream> keep = new AbstractFunction2<BlockId, InputStream, InputStream>() {
      @Override
      public InputStream apply(BlockId block, InputStream stream) {
        raw = stream;
        return stream;
      }
    };
    return new ShuffleBlockFetcherIterator(context, client, blocks, SparkEnv.get().mapOutputTracker(),
        JavaConverters.asScalaIterator(plan.fetched.iterator()), keep, conf.maxBytesInFlight,
        conf.maxRequestsInFlight, conf.maxGroupsPerAddress(), conf.maxBytesToMemory, conf.nettyAttempts,
        // Native code finds what is corrupt, and names the part.
        false, false, false, "ADLER32", metrics, false, new SystemClock());
  }

  /** Files first: the blocks of other hosts are on their way meanwhile. */
  private Input nextInput() {
    if (!local.isEmpty()) {
      return local.remove();
    }
    if (fetched == null || !fetched.hasNext()) {
      return null;
    }
    Tuple2<BlockId, InputStream> next = fetched.next();
    if (!(raw instanceof GroupStream)) {
      return ofSpark(next);
    }
    GroupBuffer buffer = ((GroupStream) raw).buffer;
    // The iterator has counted the group as one block.
    metrics.incRemoteBlocksFetched(buffer.group.parts.count() - 1L);
    return new GroupInput(buffer, next._2(), readers.client, failure, context, slices);
  }

  /** A block that the iterator has read from a file. */
  private Input ofSpark(Tuple2<BlockId, InputStream> block) {
    Tuple2<BlockManagerId, Parts> found = plan.stream(block._1().name());
    return new StreamInput(block._2(), found._1(), found._2(), failure, chunk);
  }
}
