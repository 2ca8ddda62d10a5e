package io.faro.bench;

import java.lang.reflect.Field;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleHandle;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.shuffle.sort.SortShuffleManager;
import org.apache.spark.storage.BlockManager;

/**
 * The "free" side: Spark's own shuffle with a block client that maps the peer's files. It has no network and no cost at
 * the owner, and it uses Spark's own reader; no transport behind that reader can be faster. It is for measuring only,
 * because it needs both executors on one host.
 */
public final class FreeShuffleManager extends SortShuffleManager {
  private boolean installed;

  public FreeShuffleManager(SparkConf conf, boolean isDriver) {
    super(conf);
  }

  @Override
  public <K, C> ShuffleReader<K, C> getReader(ShuffleHandle handle, int startMapIndex, int endMapIndex,
      int startPartition, int endPartition, TaskContext context, ShuffleReadMetricsReporter metrics) {
    install();
    return super.getReader(handle, startMapIndex, endMapIndex, startPartition, endPartition, context, metrics);
  }

  private synchronized void install() {
    if (installed) {
      return;
    }
    try {
      BlockManager manager = SparkEnv.get().blockManager();
      Field client = BlockManager.class.getDeclaredField("blockStoreClient");
      client.setAccessible(true);
      client.set(manager, new PeerFilesClient(SparkEnv.get().conf().get("spark.local.dir")));
      installed = true;
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("the block client cannot be replaced", e);
    }
  }
}
