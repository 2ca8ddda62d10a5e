package io.faro.spark.read;

import io.faro.OutputFiles;
import java.io.IOException;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.BlockManagerId;
import scala.Option;

/** Another executor's on this host ({@code spark.shuffle.readHostLocalDisk}). */
final class HostFiles implements LocalFiles {
  private final BlockManagerId address;
  private final BlockManager blocks;
  private final OutputFinder outputs;
  private final String[] directories;

  /** {@code directories}: the executor's local ones. */
  HostFiles(BlockManagerId address, BlockManager blocks, OutputFinder outputs, String[] directories) {
    this.address = address;
    this.blocks = blocks;
    this.outputs = outputs;
    this.directories = directories;
  }

  @Override
  public BlockManagerId address() {
    return address;
  }

  @Override
  public OutputFiles find(int shuffle, long map) {
    return outputs.find(shuffle, map, Option.apply(directories));
  }

  @Override
  public ManagedBuffer bySpark(BlockId block) throws IOException {
    return blocks.getHostLocalShuffleData(block, directories);
  }
}
