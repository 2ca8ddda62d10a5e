package io.faro.spark.write;

import java.io.IOException;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.shuffle.ShuffleWriter;
import scala.Option;
import scala.Product2;
import scala.collection.Iterator;

/** Spark's writer, which also calls {@code committed} when the output is written. */
public final class CommittingWriter<K, V> extends ShuffleWriter<K, V> {
  private final ShuffleWriter<K, V> spark;
  private final Runnable committed;

  public CommittingWriter(ShuffleWriter<K, V> spark, Runnable committed) {
    this.spark = spark;
    this.committed = committed;
  }

  @Override
  public void write(Iterator<Product2<K, V>> records) throws IOException {
    spark.write(records);
  }

  @Override
  public Option<MapStatus> stop(boolean success) {
    Option<MapStatus> status = spark.stop(success);
    if (success && status.isDefined()) {
      committed.run();
    }
    return status;
  }

  @Override
  public long[] getPartitionLengths() {
    return spark.getPartitionLengths();
  }
}
