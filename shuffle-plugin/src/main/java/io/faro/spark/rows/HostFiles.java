package io.faro.spark.rows;

import io.faro.OutputFiles;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import org.apache.spark.TaskContext;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.BlockManagerId;
import scala.Option;

/**
 * Another executor's on this host ({@code spark.shuffle.readHostLocalDisk}). Where its directories are is asked once,
 * of the executor or of the external shuffle service, as Spark's fetch iterator asks.
 */
final class HostFiles implements LocalFiles {
  /** Directories by executor. */
  static final class Known {
    private final Map<String, String[]> directories = new ConcurrentHashMap<>();
  }

  private final BlockManagerId address;
  private final BlockManager blocks;
  private final OutputFinder outputs;
  private final TaskContext context;
  private final Known known;

  HostFiles(BlockManagerId address, BlockManager blocks, OutputFinder outputs, TaskContext context, Known known) {
    this.address = address;
    this.blocks = blocks;
    this.outputs = outputs;
    this.context = context;
    this.known = known;
  }

  @Override
  public BlockManagerId address() {
    return address;
  }

  @Override
  public OutputFiles find(int shuffle, long map) throws IOException {
    return outputs.find(shuffle, map, Option.apply(directories()));
  }

  @Override
  public ManagedBuffer bySpark(BlockId block) throws IOException {
    return blocks.getHostLocalShuffleData(block, directories());
  }

  private String[] directories() throws IOException {
    String[] found = known.directories.get(address.executorId());
    if (found == null) {
      found = ask();
      known.directories.put(address.executorId(), found);
    }
    return found;
  }

  private String[] ask() throws IOException {
    String executor = address.executorId();
    CompletableFuture<Map<String, String[]>> answer = new CompletableFuture<>();
    blocks.blockStoreClient().getHostLocalDirs(address.host(), address.port(), new String[] {executor}, answer);
    try {
      String[] found = TaskWait.get(answer, context).get(executor);
      if (found == null) {
        throw new IOException("the answer has no local directories of executor " + executor);
      }
      return found;
    } catch (ExecutionException e) {
      throw new IOException("the local directories of executor " + executor + " are not known", e.getCause());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted while executor " + executor + " was asked for its local directories", e);
    }
  }
}
