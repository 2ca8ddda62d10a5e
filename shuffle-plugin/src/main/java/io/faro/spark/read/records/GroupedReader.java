package io.faro.spark.read.records;

import io.faro.spark.read.groups.ReaderContext;
import io.faro.spark.read.groups.FetchedGroup;
import io.faro.spark.read.groups.PartFailure;
import io.faro.spark.read.groups.PlanFetches;
import io.faro.spark.read.groups.ReaderEnd;
import io.faro.spark.read.groups.SecondFetch;
import io.faro.spark.read.places.LocalFiles;
import io.faro.spark.read.places.Parts;
import io.faro.spark.read.places.ReadPlan;
import io.faro.spark.read.records.FileRecords.FileChunk;
import java.util.ArrayDeque;
import java.util.Deque;
import org.apache.spark.Aggregator;
import org.apache.spark.InterruptibleIterator;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.storage.BlockManager;
import scala.Option;
import scala.Product2;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/**
 * Reads the records of a shuffle whose serializer is not Spark SQL's, or whose codec native code does not know. As
 * Spark's reader it uses the shuffle's serializer and Spark's codec, but it opens one stream for each group of parts,
 * not one for each part. So the serializer's objects must be movable within a stream, and the codec's streams must be
 * joinable; Spark's own batch fetch needs both too.
 */
public final class GroupedReader<K, C> implements ShuffleReader<K, C> {
  private final ReaderContext shared;
  private final ReadPlan plan;
  private final ShuffleDependency<?, ?, ?> dependency;
  private final TaskContext context;
  private final ShuffleReadMetricsReporter metrics;
  private final BlockManager blocks = SparkEnv.get().blockManager();
  private final PartFailure failure;
  private final SecondFetch secondFetch;
  private final Decompression decompression;
  private final FileChunk chunk;
  private final Deque<RecordSource> local = new ArrayDeque<>();
  private PlanFetches fetches;

  public GroupedReader(ReaderContext shared, ReadPlan plan, ShuffleDependency<?, ?, ?> dependency, TaskContext context,
      ShuffleReadMetricsReporter metrics) {
    this.shared = shared;
    this.plan = plan;
    this.dependency = dependency;
    this.context = context;
    this.metrics = metrics;
    failure = new PartFailure(blocks.blockStoreClient(), shared.conf.checksum);
    secondFetch = shared.secondFetch(context, failure);
    chunk = new FileChunk(shared.endpoint);
    decompression = new Decompression(SparkEnv.get().serializerManager(), dependency.shuffleId());
  }

  @Override
  public Iterator<Product2<K, C>> read() {
    ReaderEnd end = new ReaderEnd();
    RecordIterator records = new RecordIterator(
        this::nextSource, dependency.serializer().newInstance(), decompression, context, metrics, end::run);
    fetches = PlanFetches.start(shared, plan, blocks, context, metrics, records::close, end, this::addLocal);
    return combined(new InterruptibleIterator<>(context, records));
  }

  /** In groups of the size of those that are fetched. */
  private void addLocal(Parts parts, LocalFiles files) {
    ReadPlan.Limits limits = shared.conf.limits();
    int first = 0;
    long bytes = 0;
    for (int i = 0; i < parts.count(); i++) {
      if (i > first && (i - first == limits.parts || bytes + parts.size(i) > limits.bytes)) {
        local.add(files(parts, first, i, files));
        first = i;
        bytes = 0;
      }
      bytes += parts.size(i);
    }
    if (parts.count() > 0) {
      local.add(files(parts, first, parts.count(), files));
    }
  }

  private FileRecords files(Parts parts, int first, int end, LocalFiles files) {
    return new FileRecords(parts, first, end, files, chunk, decompression, failure,
        (address, part) -> fetches.one(address, part, secondFetch, failure, this::group, StreamRecords::new), metrics);
  }

  private RecordSource group(FetchedGroup group) {
    return new GroupRecords(group, decompression, failure);
  }

  /** Files first: the blocks of other hosts are on their way meanwhile. */
  private RecordSource nextSource() {
    return local.isEmpty() ? fetches.next(secondFetch, failure, this::group, StreamRecords::new) : local.remove();
  }

  /** Aggregates and sorts the records where the dependency asks for it, as Spark's reader does. */
  @SuppressWarnings("unchecked")
  private Iterator<Product2<K, C>> combined(Iterator<?> records) {
    Option<Aggregator<K, Object, C>> aggregator =
        (Option<Aggregator<K, Object, C>>) (Option<?>) dependency.aggregator();
    Iterator<?> result;
    if (dependency.keyOrdering().isDefined()) {
      result = KeySorting.<K, Object, C>sorter(
          context, whileSorting(aggregator), dependency.keyOrdering(), dependency.serializer())
          .insertAllAndUpdateMetrics((Iterator<Product2<K, Object>>) records);
    } else if (aggregator.isEmpty()) {
      return (Iterator<Product2<K, C>>) records;
    } else if (dependency.mapSideCombine()) {
      result = aggregator.get().combineCombinersByKey((Iterator<Product2<K, C>>) records, context);
    } else {
      result = aggregator.get().combineValuesByKey((Iterator<Product2<K, Object>>) records, context);
    }
    // The first one may have been used up.
    return new InterruptibleIterator<>(context, (Iterator<Product2<K, C>>) result);
  }

  /** The sorter's aggregator: one that merges, where the records are combined values already. */
  private Option<?> whileSorting(Option<Aggregator<K, Object, C>> aggregator) {
    if (aggregator.isEmpty() || !dependency.mapSideCombine()) {
      return aggregator;
    }
    return Option.apply(new Aggregator<K, C, C>(
        new AbstractFunction1<C, C>() {
          @Override
          public C apply(C combined) {
            return combined;
          }
        },
        aggregator.get().mergeCombiners(), aggregator.get().mergeCombiners()));
  }
}
