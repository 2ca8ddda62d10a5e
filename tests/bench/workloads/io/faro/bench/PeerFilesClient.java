package io.faro.bench;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.network.buffer.NioManagedBuffer;
import org.apache.spark.network.shuffle.BlockFetchingListener;
import org.apache.spark.network.shuffle.BlockStoreClient;
import org.apache.spark.network.shuffle.DownloadFileManager;

/** Finds map outputs in the block manager directories under one root, maps them, and hands out slices. */
final class PeerFilesClient extends BlockStoreClient {
  private static final int SUB_DIRECTORIES = 64;
  /** A run has one shuffle. Mappings of older ones are dropped, so that deleted files return their memory. */
  private static final int MAX_OUTPUTS = 2_000;

  private final File root;
  private final Map<String, Output> outputs = new ConcurrentHashMap<>();
  private volatile List<File> managers = new ArrayList<>();

  PeerFilesClient(String root) {
    this.root = new File(root);
  }

  @Override
  public void fetchBlocks(String host, int port, String execId, String[] blockIds, BlockFetchingListener listener,
      DownloadFileManager temporary) {
    if (outputs.size() > MAX_OUTPUTS) {
      outputs.clear();
    }
    for (String block : blockIds) {
      String[] ids = block.split("_");
      int from = Integer.parseInt(ids[3]);
      int to = ids.length > 4 ? Integer.parseInt(ids[4]) : from + 1;
      String name = "shuffle_" + ids[1] + "_" + ids[2] + "_0";
      Output output = outputs.computeIfAbsent(name, this::open);
      ByteBuffer bytes = output.data.duplicate();
      bytes.position((int) output.offsets[from]).limit((int) output.offsets[to]);
      listener.onBlockFetchSuccess(block, new NioManagedBuffer(bytes.slice()));
    }
  }

  private Output open(String name) {
    File index = find(name + ".index");
    long[] offsets = new long[(int) (index.length() / 8)];
    try (DataInputStream in = new DataInputStream(new BufferedInputStream(new FileInputStream(index)));
        FileChannel data = FileChannel.open(find(name + ".data").toPath(), StandardOpenOption.READ)) {
      for (int i = 0; i < offsets.length; i++) {
        offsets[i] = in.readLong();
      }
      return new Output(data.map(FileChannel.MapMode.READ_ONLY, 0, data.size()), offsets);
    } catch (IOException e) {
      throw new IllegalStateException(name, e);
    }
  }

  private File find(String name) {
    String inside = String.format("%02x", Math.abs(name.hashCode() % SUB_DIRECTORIES)) + "/" + name;
    for (int attempt = 0; attempt < 2; attempt++) {
      for (File manager : managers) {
        File file = new File(manager, inside);
        if (file.exists()) {
          return file;
        }
      }
      List<File> found = new ArrayList<>();
      collect(root, 4, found);
      managers = found;
    }
    throw new IllegalStateException("no " + inside + " in " + managers);
  }

  private static void collect(File directory, int depth, List<File> found) {
    File[] inside = depth == 0 ? null : directory.listFiles(File::isDirectory);
    if (inside == null) {
      return;
    }
    for (File child : inside) {
      if (child.getName().startsWith("blockmgr-")) {
        found.add(child);
      } else {
        collect(child, depth - 1, found);
      }
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
