package io.faro.spark.rows;

import io.faro.OutputFiles;
import io.faro.OutputResolver;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.BlockManagerId;

/** This executor's own. */
final class OwnFiles implements LocalFiles {
  private final BlockManager blocks;
  private final OutputResolver files;

  OwnFiles(BlockManager blocks, OutputResolver files) {
    this.blocks = blocks;
    this.files = files;
  }

  @Override
  public BlockManagerId address() {
    return blocks.blockManagerId();
  }

  @Override
  public OutputFiles find(int shuffle, long map) throws Exception {
    return files.resolve(shuffle, map);
  }

  /** Also from the fall-back storage. */
  @Override
  public ManagedBuffer bySpark(BlockId block) {
    return blocks.getLocalBlockData(block);
  }
}
