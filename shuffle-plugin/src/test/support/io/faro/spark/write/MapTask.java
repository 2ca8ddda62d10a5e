package io.faro.spark.write;

import io.faro.spark.write.RandomRows.Rows;
import java.io.File;
import java.lang.reflect.Field;
import java.util.BitSet;
import java.util.Properties;
import org.apache.spark.Partitioner;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.memory.TaskMemoryManager;
import org.apache.spark.memory.UnifiedMemoryManager;
import org.apache.spark.rdd.RDD;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import org.apache.spark.shuffle.ShuffleHandle;
import org.apache.spark.shuffle.ShuffleWriteProcessor;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.shuffle.sort.SortShuffleManager;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.UnsafeRowSerializer;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics;
import scala.Option;
import scala.Product2;
import scala.collection.JavaConverters;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/** One map task of a shuffle of Spark SQL's rows, with memory of its own. {@link LocalSpark#use} comes before it. */
final class MapTask {
  /** Numbers of Faro's task and of Spark's in the names of their files. */
  static final long FARO = 0;
  static final long SPARK = 1;

  final SparkConf conf;
  final int partitions;
  final long mapId;
  final TaskMemoryManager memory;
  final TaskMetrics metrics = TaskMetrics.empty();
  final TaskContextImpl context;
  final SQLMetric dataSize;
  final ShuffleDependency<Integer, UnsafeRow, UnsafeRow> dependency;
  private final SortShuffleManager manager;
  private final ShuffleHandle handle;
  /** True if Faro's writer may make row blocks, and the number that it made. */
  boolean packs;
  long rowBlocks;
  /** {@code null} before {@link #write} ends well. */
  MapStatus status;
  long[] lengths;

  /** {@code bytes}: what it may have of execution memory, on the heap and outside it. */
  MapTask(SparkContext spark, SparkConf conf, int partitions, long mapId, long bytes) {
    this.conf = conf.clone().set("spark.memory.offHeap.size", Long.toString(bytes));
    this.partitions = partitions;
    this.mapId = mapId;
    memory = new TaskMemoryManager(new UnifiedMemoryManager(this.conf, bytes, 0, 1), mapId);
    context = new TaskContextImpl(
        0, 0, 0, mapId, 0, 1, memory, new Properties(), null, metrics, 1, scala.Predef$.MODULE$.Map().empty());
    dataSize = SQLMetrics.createSizeMetric(spark, "data size", -1);
    ClassTag<Integer> key = ClassTag$.MODULE$.apply(Integer.class);
    ClassTag<UnsafeRow> row = ClassTag$.MODULE$.apply(UnsafeRow.class);
    ClassTag<Product2<Integer, UnsafeRow>> record = ClassTag$.MODULE$.apply(Product2.class);
    RDD<Product2<Integer, UnsafeRow>> rows = spark.emptyRDD(record);
    dependency = new ShuffleDependency<>(rows, new ByKey(partitions), new UnsafeRowSerializer(1, dataSize),
        Option.empty(), Option.empty(), false, new ShuffleWriteProcessor(), key, row, row);
    manager = new SortShuffleManager(this.conf);
    handle = manager.registerShuffle(dependency.shuffleId(), dependency);
  }

  /** Keys are partitions. */
  private static final class ByKey extends Partitioner {
    private static final long serialVersionUID = 1;
    private final int partitions;

    ByKey(int partitions) {
      this.partitions = partitions;
    }

    @Override
    public int numPartitions() {
      return partitions;
    }

    @Override
    public int getPartition(Object key) {
      return (Integer) key;
    }
  }

  IndexShuffleBlockResolver resolver() {
    return manager.shuffleBlockResolver();
  }

  File dataFile() {
    return resolver().getDataFile(dependency.shuffleId(), mapId);
  }

  /** Faro's for {@link #FARO}, otherwise what Spark takes. */
  ShuffleWriter<Integer, UnsafeRow> writer() {
    if (mapId == SPARK) {
      return manager.getWriter(handle, mapId, context, metrics.shuffleWriteMetrics());
    }
    RowWriters writers = new RowWriters(conf, true, () -> packs, () -> null, () -> { }, why -> {
      throw new IllegalStateException("not written by Faro: " + why);
    }, made -> rowBlocks += made);
    return writers.writer(handle, mapId, context, metrics.shuffleWriteMetrics(), resolver());
  }

  /** Writes all rows, as a task of Spark's does. Spark's code throws checked exceptions that it does not declare. */
  void write(Rows rows) throws Exception {
    ShuffleWriter<Integer, UnsafeRow> writer = writer();
    boolean done = false;
    try {
      writer.write(JavaConverters.asScalaIterator(rows));
      done = true;
    } finally {
      Option<MapStatus> stopped = writer.stop(done);
      status = done ? stopped.get() : null;
    }
    lengths = writer.getPartitionLengths();
  }

  /** Deletes what was committed. */
  void remove() {
    resolver().removeDataByMap(dependency.shuffleId(), mapId);
    manager.unregisterShuffle(dependency.shuffleId());
  }

  /**
   * Returns how many pages of memory the task has. Bytes would not do after a failure: where an exception comes from a
   * spill, Spark's memory manager keeps what it had found before, until the task ends.
   */
  int pages() throws ReflectiveOperationException {
    Field pages = TaskMemoryManager.class.getDeclaredField("allocatedPages");
    pages.setAccessible(true);
    return ((BitSet) pages.get(memory)).cardinality();
  }

  /** Bytes of memory that the task still has; they are freed. */
  long leaked() {
    return memory.getMemoryConsumptionForThisTask() + memory.cleanUpAllAllocatedMemory();
  }
}
