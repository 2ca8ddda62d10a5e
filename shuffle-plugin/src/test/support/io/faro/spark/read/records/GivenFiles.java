package io.faro.spark.read.records;

import io.faro.spark.read.places.Blocks;
import io.faro.spark.read.places.LocalFiles;
import io.faro.spark.read.places.Parts;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.storage.BlockManagerId;

/** Files of an executor's map outputs whose parts a test makes; native code does not know them. */
final class GivenFiles implements LocalFiles {
  /** Makes part {@code i}. */
  interface Maker {
    ManagedBuffer part(int i) throws IOException;
  }

  /** Parts that were left to the network: {@code corrupt 5}, or {@code gone 5}. */
  final List<String> left = new ArrayList<>();
  private final boolean isLent;
  private final Maker maker;

  /** {@code isLent}: there is another way to the parts than these files. */
  GivenFiles(boolean isLent, Maker maker) {
    this.isLent = isLent;
    this.maker = maker;
  }

  @Override
  public BlockManagerId address() {
    return Blocks.address("1");
  }

  @Override
  public boolean resolve(Parts of, int i) {
    throw new AssertionError("native code does not read them");
  }

  @Override
  public ManagedBuffer bySpark(Parts of, int i) throws IOException {
    return maker.part(i);
  }

  @Override
  public boolean leave(Parts of, int i, String problem, boolean corrupt) {
    if (isLent) {
      left.add((corrupt ? "corrupt " : "gone ") + i);
    }
    return isLent;
  }

  @Override
  public boolean lost(Parts of, int i, String problem) {
    return isLent;
  }
}
