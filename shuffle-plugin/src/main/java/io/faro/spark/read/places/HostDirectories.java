package io.faro.spark.read.places;

import io.faro.Nullable;
import java.io.File;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import org.apache.spark.TaskContext;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.BlockManagerId;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The local directories of the other executors of this host, as far as this executor sees them. One host name does not
 * mean one file system: pods with {@code hostNetwork} and containers of one worker share the name, and nothing else.
 *
 * <p>Each executor is asked once, itself or its external shuffle service, as Spark's fetch iterator asks. The name of a
 * block manager's directory has a random id, so a directory of this name is the executor's.
 */
public final class HostDirectories {
  private static final Logger LOG = LoggerFactory.getLogger(HostDirectories.class);

  /** The directories by executor; empty if they cannot be read on this host. */
  private final Map<String, Optional<String[]>> known = new ConcurrentHashMap<>();

  /** Returns whether Spark reads files of other executors of this host. */
  public static boolean wanted(BlockManager blocks) {
    return blocks.hostLocalDirManager().isDefined();
  }

  /** Returns whether Spark's fetch iterator would look for this executor's files on this host. */
  public static boolean ofThisHost(BlockManager blocks, BlockManagerId address) {
    BlockManagerId own = blocks.blockManagerId();
    return wanted(blocks) && address.host().equals(own.host()) && !address.executorId().equals(own.executorId());
  }

  /**
   * The directories of an executor of this host; null if its blocks come over the network. Waits for the answer
   * the first time.
   */
  @Nullable public String[] of(BlockManagerId address, BlockManager blocks, TaskContext context) {
    String executor = address.executorId();
    Optional<String[]> found = known.get(executor);
    if (found != null) {
      return found.orElse(null);
    }
    String[] directories = ask(address, blocks, context);
    if (directories == null) {
      return null;
    }
    String hidden = hidden(directories);
    found = hidden == null ? Optional.of(directories) : Optional.empty();
    if (known.putIfAbsent(executor, found) == null && hidden != null) {
      LOG.info("Faro reads the blocks of executor {} over the network, although it has this host's name ({}): its "
          + "local directory {} cannot be read here. With spark.shuffle.readHostLocalDisk=false no executor is asked "
          + "for its directories", executor, address.host(), hidden);
    }
    return found.orElse(null);
  }

  /** The first directory that cannot be read here; null if all can. */
  @Nullable private static String hidden(String[] directories) {
    for (String directory : directories) {
      File file = new File(directory);
      if (!file.isDirectory() || !file.canRead() || !file.canExecute()) {
        return directory;
      }
    }
    return null;
  }

  /** Null if there is no answer; the executor may be gone, or it is asked again later. */
  @Nullable private static String[] ask(BlockManagerId address, BlockManager blocks, TaskContext context) {
    String executor = address.executorId();
    CompletableFuture<Map<String, String[]>> answer = new CompletableFuture<>();
    try {
      blocks.blockStoreClient().getHostLocalDirs(address.host(), address.port(), new String[] {executor}, answer);
      return FetchWait.get(answer, context).get(executor);
    } catch (ExecutionException | UnsupportedOperationException e) {
      LOG.debug("The local directories of executor {} are not known", executor, e);
      return null;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException(
          "the task was interrupted while executor " + executor + " was asked for its local directories", e);
    }
  }
}
