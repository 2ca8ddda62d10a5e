package io.faro.spark.write;

import io.faro.Nullable;
import io.faro.StagedOutput;
import io.faro.rows.BlockCompressor;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.function.LongConsumer;
import java.util.function.Supplier;
import org.apache.spark.Partitioner;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.memory.TaskMemoryManager;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.storage.BlockManager;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.Product2;
import scala.collection.Iterator;

/**
 * Writes the rows of one map task of Spark SQL's. A row is copied once, into its partition's buffer; full buffers are
 * compressed by native code. The data file is committed by Spark's resolver.
 */
public final class RowShuffleWriter<K, V> extends ShuffleWriter<K, V> {
  /** Instead of a number of columns: the output has no row blocks. */
  static final int NOT_PACKED = -1;
  private static final Logger LOG = LoggerFactory.getLogger(RowShuffleWriter.class);

  private final WriterConf conf;
  private final ShuffleDependency<K, V, ?> dependency;
  private final long mapId;
  /** Null if nothing counts the data's size. */
  @Nullable private final SQLMetric dataSize;
  private final int packedFields;
  private final boolean few;
  private final TaskContext context;
  private final ShuffleWriteMetricsReporter metrics;
  private final IndexShuffleBlockResolver resolver;
  private final Supplier<StagedOutput> stage;
  private final LongConsumer rowBlocks;
  private final BlockManager blocks = SparkEnv.get().blockManager();
  private long[] lengths;
  /** The front of the data file, from when it is written on; null if nothing is staged. */
  @Nullable private StagedOutput staged;
  /** Null before the output is committed. */
  @Nullable private MapStatus status;
  private boolean stopped;

  /**
   * {@code packedFields}: the columns of a row, for row blocks; {@code few}: Spark would take its writer for few
   * partitions; {@code rowBlocks} counts row blocks.
   */
  RowShuffleWriter(WriterConf conf, ShuffleDependency<K, V, ?> dependency, long mapId, SQLMetric dataSize,
      int packedFields, boolean few, TaskContext context, ShuffleWriteMetricsReporter metrics,
      IndexShuffleBlockResolver resolver, Supplier<StagedOutput> stage, LongConsumer rowBlocks) {
    this.conf = conf;
    this.dependency = dependency;
    this.mapId = mapId;
    this.dataSize = dataSize;
    this.packedFields = packedFields;
    this.few = few;
    this.context = context;
    this.metrics = metrics;
    this.resolver = resolver;
    this.stage = stage;
    this.rowBlocks = rowBlocks;
  }

  @Override
  public void write(Iterator<Product2<K, V>> records) throws IOException {
    Partitioner partitioner = dependency.partitioner();
    int partitions = partitioner.numPartitions();
    PartitionSums sums = new PartitionSums(conf.checksum, partitions);
    RowSums rowSums = RowSums.of(dependency);
    WriteContext writes = new WriteContext(partitions, sums, conf.sync, context::killTaskIfInterrupted);
    Supplier<File> names = () -> blocks.diskBlockManager().createTempShuffleBlock()._2();
    try (Spills spills = new Spills(names, writes);
        PartitionFiles files = new PartitionFiles(names, writes);
        BlockCompressor compressor = compressor();
        PartitionBuffers buffers = buffers(partitions, compressor, spills, files)) {
      try {
        metrics.incRecordsWritten(add(records, partitioner, rowSums, buffers));
        commit(buffers, writes);
        status = MapStatuses.of(blocks.shuffleServerId(), codecLengths(buffers), mapId, rowSums.value());
      } finally {
        rowBlocks.accept(compressor.rowBlocks());
        metrics.incWriteTime(writes.writeNanos());
        TaskMetrics of = context.taskMetrics();
        of.incPeakExecutionMemory(buffers.peakBytes());
        of.incMemoryBytesSpilled(spills.memoryBytes());
        of.incDiskBytesSpilled(spills.diskBytes());
      }
    }
  }

  private PartitionBuffers buffers(int partitions, BlockCompressor compressor, Spills spills, PartitionFiles files) {
    TaskMemoryManager memory = context.taskMemoryManager();
    long page = memory.pageSizeBytes();
    return few
        ? new PartitionBuffers(memory, partitions, blockBytes(), conf.maxBytesOfFew(partitions, page), compressor,
            files, new SpareMemory(SparkEnv.get().memoryManager(), memory))
        : new PartitionBuffers(
            memory, partitions, blockBytes(), conf.maxBytes(page), conf.limits, compressor, spills);
  }

  /**
   * The lengths that Spark gets: about those of the codec alone. Adaptive execution takes them for a measure of the
   * rows: with the lengths of row blocks it joined two to three times as many rows into one task, which then spilled,
   * or ran out of heap.
   */
  private long[] codecLengths(PartitionBuffers buffers) {
    long[] reported = new long[lengths.length];
    for (int i = 0; i < reported.length; i++) {
      reported[i] = buffers.codecBytes(i, lengths[i]);
    }
    return reported;
  }

  private BlockCompressor compressor() {
    return packedFields == NOT_PACKED ? BlockCompressor.open(conf.codec, conf.zstdLevel, blockBytes())
        : BlockCompressor.openForRows(conf.codec, conf.zstdLevel, blockBytes(), packedFields);
  }

  private int blockBytes() {
    return conf.blockBytes(packedFields != NOT_PACKED);
  }

  /** Returns how many rows there were. */
  private static <K, V> long add(Iterator<Product2<K, V>> records, Partitioner partitioner, RowSums sums,
      PartitionBuffers buffers) throws IOException {
    long rows = 0;
    while (records.hasNext()) {
      Product2<K, V> record = records.next();
      K key = record._1();
      UnsafeRow row = (UnsafeRow) record._2();
      int partition = partitioner.getPartition(key);
      buffers.add(partition, row.getBaseObject(), row.getBaseOffset(), row.getSizeInBytes());
      sums.add(partition, key, row);
      rows++;
    }
    return rows;
  }

  private void commit(PartitionBuffers buffers, WriteContext writes) throws IOException {
    File data = resolver.getDataFile(dependency.shuffleId(), mapId);
    File temporary = resolver.createTempFile(data);
    staged = stage.get();
    try (PartitionFile out = new PartitionFile(temporary, writes, staged)) {
      buffers.writeTo(out);
      lengths = out.lengths;
      Object file = staged == null || out.bytes() == 0 ? null : identity(temporary);
      long started = System.nanoTime();
      // Without rows there is an index only, as of Spark's writers: no data, no checksums.
      boolean empty = out.bytes() == 0;
      resolver.writeMetadataFileAndCommit(dependency.shuffleId(), mapId, lengths,
          empty ? new long[0] : writes.sums.values(), empty ? null : temporary);
      writes.wrote(started);
      if (staged != null && (file == null || !file.equals(identity(data)))) {
        // Another attempt of this task was first: its file stays, and may have the rows in another order.
        staged.close();
      }
      metrics.incBytesWritten(out.bytes());
      if (dataSize != null) {
        dataSize.add(buffers.rowBytes());
      }
    } finally {
      if (temporary.exists() && !temporary.delete()) {
        LOG.error("The unfinished data file {} cannot be deleted", temporary);
      }
    }
  }

  /** Returns the identity that a file keeps when it is renamed. */
  private static Object identity(File file) throws IOException {
    return Files.readAttributes(file.toPath(), BasicFileAttributes.class).fileKey();
  }

  /** The front of the committed data file, for the endpoint; null if nothing was staged. */
  @Nullable public StagedOutput staged() {
    return staged;
  }

  @Override
  public Option<MapStatus> stop(boolean success) {
    if (stopped || !success) {
      stopped = true;
      if (staged != null) {
        staged.close();
      }
      return Option.empty();
    }
    stopped = true;
    if (status == null) {
      throw new IllegalStateException("Cannot call stop(true) without having called write()");
    }
    return Option.apply(status);
  }

  @Override
  public long[] getPartitionLengths() {
    return lengths;
  }
}
