package io.faro;

import java.io.File;
import java.util.Objects;

/** Where a map output lies: concatenated partitions, and partitions + 1 big-endian 64-bit offsets. */
public final class OutputFiles {
  private final File data;
  private final File index;

  public OutputFiles(File data, File index) {
    this.data = Objects.requireNonNull(data, "data");
    this.index = Objects.requireNonNull(index, "index");
  }

  public File data() {
    return data;
  }

  public File index() {
    return index;
  }
}
