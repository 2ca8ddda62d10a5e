package io.faro;

import java.io.File;
import java.util.Objects;

/** The files of a map output: concatenated partitions, and partitions + 1 big-endian 64-bit offsets. */
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
