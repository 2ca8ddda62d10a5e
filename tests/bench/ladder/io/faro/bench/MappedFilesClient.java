package io.faro.bench;

import java.io.DataInputStream;
import java.io.BufferedInputStream;
import java.io.FileInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.network.buffer.NioManagedBuffer;
import org.apache.spark.network.shuffle.BlockFetchingListener;
import org.apache.spark.network.shuffle.BlockStoreClient;
import org.apache.spark.network.shuffle.DownloadFileManager;

/**
 * The "free" side, which has no transport. The reader maps the owner's files and hands out slices, on the thread that
 * asks. It costs only what the harness costs on every other side too.
 */
final class MappedFilesClient extends BlockStoreClient {
  private final ShuffleFiles files;
  private final Map<Long, Output> outputs = new ConcurrentHashMap<>();

  MappedFilesClient(ShuffleFiles files) {
    this.files = files;
  }

  @Override
  public void fetchBlocks(String host, int port, String execId, String[] blockIds, BlockFetchingListener listener,
      DownloadFileManager temporary) {
    for (String block : blockIds) {
      String[] ids = block.split("_");
      int shuffle = Integer.parseInt(ids[1]);
      int map = Integer.parseInt(ids[2]);
      int reduce = Integer.parseInt(ids[3]);
      Output output = outputs.computeIfAbsent((long) shuffle << 32 | map, key -> open(shuffle, map));
      ByteBuffer bytes = output.data.slice(
          (int) output.offsets[reduce], (int) (output.offsets[reduce + 1] - output.offsets[reduce]));
      listener.onBlockFetchSuccess(block, new NioManagedBuffer(bytes));
    }
  }

  private Output open(int shuffle, int map) {
    try (FileChannel data = FileChannel.open(files.data(shuffle, map).toPath(), StandardOpenOption.READ);
        DataInputStream index = new DataInputStream(
            new BufferedInputStream(new FileInputStream(files.index(shuffle, map))))) {
      long[] offsets = new long[(int) (files.index(shuffle, map).length() / 8)];
      for (int i = 0; i < offsets.length; i++) {
        offsets[i] = index.readLong();
      }
      return new Output(data.map(FileChannel.MapMode.READ_ONLY, 0, data.size()), offsets);
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  @Override
  public void close() {}

  private static final class Output {
    final ByteBuffer data;
    final long[] offsets;

    Output(ByteBuffer data, long[] offsets) {
      this.data = data;
      this.offsets = offsets;
    }
  }
}
