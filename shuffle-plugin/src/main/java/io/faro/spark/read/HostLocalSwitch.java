package io.faro.spark.read;

import io.faro.spark.read.places.HostDirectories;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Supplier;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.BlockManagerId;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;

/**
 * Turns {@code spark.shuffle.readHostLocalDisk} off in this executor, for Spark's own readers, once there is another
 * executor with this host's name whose directories cannot be read here.
 *
 * <p>Spark's fetch iterator looks twice at the setting while it is made, and would wait for ever for blocks if it
 * changed in between. So it changes only while no reader of Spark's is being made.
 */
final class HostLocalSwitch {
  private static final Logger LOG = LoggerFactory.getLogger(HostLocalSwitch.class);
  /** A reader that combines or sorts reads all its blocks while it is made. */
  private static final long WAIT_SECONDS = 10;

  private final HostDirectories directories;
  private final ReadWriteLock readers = new ReentrantReadWriteLock();

  HostLocalSwitch(HostDirectories directories) {
    this.directories = directories;
  }

  /**
   * Returns Spark's own reader, which finds out first whether files of this host's other executors can be read here.
   * {@code addresses}: the executors whose blocks are read.
   */
  <K, C> ShuffleReader<K, C> guard(
      ShuffleReader<K, C> spark, Set<BlockManagerId> addresses, TaskContext context) {
    return () -> {
      look(addresses, SparkEnv.get().blockManager(), context);
      return whileUnchanged(spark::read);
    };
  }

  /** Turns it off if it is on and one of these executors needs that. */
  private void look(Set<BlockManagerId> addresses, BlockManager blocks, TaskContext context) {
    for (BlockManagerId address : addresses) {
      if (HostDirectories.ofThisHost(blocks, address) && directories.of(address, blocks, context) == null) {
        turnOff(blocks);
      }
    }
  }

  private void turnOff(BlockManager blocks) {
    try {
      if (!readers.writeLock().tryLock(WAIT_SECONDS, TimeUnit.SECONDS)) {
        LOG.info("Faro: tasks that combine or sort while they read are under way, so this task reads as Spark does, "
            + "and its stage may have to run again; spark.shuffle.readHostLocalDisk=false avoids this");
        return;
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("the task was interrupted while it waited for other readers", e);
    }
    try {
      blocks.hostLocalDirManager_$eq(Option.empty());
    } finally {
      readers.writeLock().unlock();
    }
  }

  /** Runs it while the switch stays as it is. */
  private <T> T whileUnchanged(Supplier<T> action) {
    readers.readLock().lock();
    try {
      return action.get();
    } finally {
      readers.readLock().unlock();
    }
  }
}
