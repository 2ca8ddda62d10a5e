package io.faro.spark.read;

import io.faro.OutputFiles;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.BlockManagerId;
import scala.Option;

/** This executor's own. */
final class OwnFiles implements LocalFiles {
  private final BlockManager blocks;
  private final OutputFinder outputs;

  OwnFiles(BlockManager blocks, OutputFinder outputs) {
    this.blocks = blocks;
    this.outputs = outputs;
  }

  @Override
  public BlockManagerId address() {
    return blocks.blockManagerId();
  }

  @Override
  public OutputFiles find(int shuffle, long map) {
    return outputs.find(shuffle, map, Option.empty());
  }

  /** Also from the fall-back storage. */
  @Override
  public ManagedBuffer bySpark(BlockId block) {
    return blocks.getLocalBlockData(block);
  }
}
