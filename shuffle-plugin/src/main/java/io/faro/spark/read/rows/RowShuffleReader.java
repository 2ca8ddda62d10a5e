package io.faro.spark.read.rows;

import io.faro.rows.MemorySlices;
import io.faro.rows.RowReader;
import io.faro.spark.read.groups.ReaderContext;
import io.faro.spark.read.groups.PartFailure;
import io.faro.spark.read.groups.PlanFetches;
import io.faro.spark.read.groups.ReaderEnd;
import io.faro.spark.read.groups.SecondFetch;
import io.faro.spark.read.places.LocalFiles;
import io.faro.spark.read.places.Parts;
import io.faro.spark.read.places.ReadPlan;
import java.util.ArrayDeque;
import java.util.Deque;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.storage.BlockManager;
import scala.Product2;
import scala.collection.Iterator;

/**
 * Reads the rows of some partitions of a shuffle. Spark's fetch iterator fetches what is not on this host, with all its
 * limits and retries; the bytes are decoded where they lie.
 */
public final class RowShuffleReader<K, C> implements ShuffleReader<K, C> {
  private final ReaderContext shared;
  private final ReadPlan plan;
  private final int fields;
  private final TaskContext context;
  private final ShuffleReadMetricsReporter metrics;
  private final BlockManager blocks = SparkEnv.get().blockManager();
  private final PartFailure failure;
  private final MemorySlices slices = new MemorySlices();
  private final StreamRows.Chunk chunk = new StreamRows.Chunk();
  private final Deque<RowSource> local = new ArrayDeque<>();
  private final SecondFetch secondFetch;
  private PlanFetches fetches;

  public RowShuffleReader(ReaderContext shared, ReadPlan plan, int fields, TaskContext context,
      ShuffleReadMetricsReporter metrics) {
    this.shared = shared;
    this.plan = plan;
    this.fields = fields;
    this.context = context;
    this.metrics = metrics;
    this.failure = new PartFailure(blocks.blockStoreClient(), shared.conf.checksum);
    this.secondFetch = shared.secondFetch(context, failure);
  }

  @Override
  public Iterator<Product2<K, C>> read() {
    ReaderEnd end = new ReaderEnd();
    RowReader reader = RowReader.open(shared.conf.codec);
    RowIterator<K, C> rows = new RowIterator<>(this::nextSource, reader, fields, context, metrics, end::run);
    fetches = PlanFetches.start(shared, plan, blocks, context, metrics, rows::close, end, this::addLocal);
    return rows;
  }

  private void addLocal(Parts parts, LocalFiles files) {
    if (parts.count() > 0) {
      local.add(new FileRows(parts, shared.endpoint, files, failure, metrics, chunk));
    }
  }

  /** Files first: the blocks of other hosts are on their way meanwhile. */
  private RowSource nextSource() {
    if (!local.isEmpty()) {
      return local.remove();
    }
    return fetches.next(secondFetch, failure,
        group -> new GroupRows(group, slices), part -> new StreamRows(part, chunk));
  }
}
