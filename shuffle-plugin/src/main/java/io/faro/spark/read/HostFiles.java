package io.faro.spark.read;

import io.faro.Endpoint;
import io.faro.OutputFiles;
import java.io.IOException;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.BlockManagerId;
import scala.Option;

/** Another executor's on this host ({@code spark.shuffle.readHostLocalDisk}). */
final class HostFiles implements LocalFiles {
  private final BlockManagerId address;
  private final BlockManager blocks;
  private final OutputFinder outputs;
  private final Endpoint endpoint;
  private final String[] directories;

  /** {@code directories}: the executor's local ones. */
  HostFiles(BlockManagerId address, BlockManager blocks, OutputFinder outputs, Endpoint endpoint,
      String[] directories) {
    this.address = address;
    this.blocks = blocks;
    this.outputs = outputs;
    this.endpoint = endpoint;
    this.directories = directories;
  }

  @Override
  public BlockManagerId address() {
    return address;
  }

  @Override
  public boolean resolve(Parts parts, int i) {
    OutputFiles found = outputs.find(parts.shuffle, parts.map(i), Option.apply(directories));
    if (found == null) {
      return false;
    }
    endpoint.resolve(parts.shuffle, parts.map(i), found);
    return true;
  }

  @Override
  public ManagedBuffer bySpark(Parts parts, int i) throws IOException {
    return blocks.getHostLocalShuffleData(parts.id(i), directories);
  }
}
