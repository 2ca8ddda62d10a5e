package io.faro.spark.read;

import java.util.Set;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.BlockManagerId;
import scala.Product2;
import scala.collection.Iterator;

/** Spark's own reader, which finds out first whether files of this host's other executors can be read here. */
final class SparkReader<K, C> implements ShuffleReader<K, C> {
  private final ShuffleReader<K, C> spark;
  private final HostLocalSwitch hostLocal;
  private final Set<BlockManagerId> addresses;
  private final TaskContext context;

  /** {@code addresses}: the executors whose blocks are read. */
  SparkReader(
      ShuffleReader<K, C> spark, HostLocalSwitch hostLocal, Set<BlockManagerId> addresses, TaskContext context) {
    this.spark = spark;
    this.hostLocal = hostLocal;
    this.addresses = addresses;
    this.context = context;
  }

  @Override
  public Iterator<Product2<K, C>> read() {
    BlockManager blocks = SparkEnv.get().blockManager();
    hostLocal.look(addresses, blocks, context);
    return hostLocal.whileUnchanged(spark::read);
  }
}
