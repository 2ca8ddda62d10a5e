package io.faro.spark.read;

import io.faro.Endpoint;
import io.faro.OutputFiles;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.BlockManagerId;
import scala.Option;

/** This executor's own. */
final class OwnFiles implements LocalFiles {
  private final BlockManager blocks;
  private final OutputFinder outputs;
  private final Endpoint endpoint;

  OwnFiles(BlockManager blocks, OutputFinder outputs, Endpoint endpoint) {
    this.blocks = blocks;
    this.outputs = outputs;
    this.endpoint = endpoint;
  }

  @Override
  public BlockManagerId address() {
    return blocks.blockManagerId();
  }

  @Override
  public boolean resolve(Parts parts, int i) {
    OutputFiles found = outputs.find(parts.shuffle, parts.map(i), Option.empty());
    if (found == null) {
      return false;
    }
    endpoint.resolve(parts.shuffle, parts.map(i), found);
    return true;
  }

  /** Also from the fall-back storage. */
  @Override
  public ManagedBuffer bySpark(Parts parts, int i) {
    return blocks.getLocalBlockData(parts.id(i));
  }
}
