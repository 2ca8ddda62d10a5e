package io.faro.bench;

import io.faro.BlockIds;
import io.faro.spark.metrics.Reason;
import io.faro.spark.read.groups.BlockListener;
import io.faro.spark.read.groups.PartClient;
import io.faro.spark.read.places.Parts;
import io.faro.spark.transport.BlockNames;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.shuffle.BlockFetchingListener;
import org.apache.spark.network.shuffle.BlockStoreClient;
import org.apache.spark.network.shuffle.DownloadFileManager;

/**
 * Asks for blocks as Faro's readers do when the codec is lz4: they verify each part while they decode it, as Spark's
 * readers do after Netty, which is outside of what the ladder measures.
 */
final class VerifyingClient extends BlockStoreClient {
  private final PartClient client;

  VerifyingClient(PartClient client) {
    this.client = client;
  }

  @Override
  public void fetchBlocks(String host, int port, String executor, String[] names, BlockFetchingListener listener,
      DownloadFileManager files) {
    BlockIds ids = BlockNames.parse(names);
    Parts parts = new Parts(ids.shuffle(0));
    for (int i = 0; i < ids.count(); i++) {
      parts.add(ids.map(i), 0, ids.start(i), ids.end(i), 0, false);
    }
    client.fetch(host, port, executor, parts, new BlockListener() {
      @Override
      public boolean verifies() {
        return true;
      }

      @Override
      public void arrived(int at, ManagedBuffer data) {
        listener.onBlockFetchSuccess(names[at], data);
        data.release();
      }

      @Override
      public void left(int[] at, Reason reason, Throwable cause, boolean onTaskThread) {
        for (int i : at) {
          listener.onBlockFetchFailure(names[i], cause);
        }
      }
    });
  }

  @Override
  public void close() {}
}
