package io.faro.spark.write;

import java.io.Closeable;
import java.io.File;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The spills of one map output: files that are partition by partition, as the data file is. */
final class Spills implements Closeable {
  private static final Logger LOG = LoggerFactory.getLogger(Spills.class);

  /** Appends all that is to be spilled to the file. */
  interface Content {
    void writeTo(PartitionFile file) throws IOException;
  }

  private final Supplier<File> files;
  private final WriteContext context;
  private final List<Spill> spills = new ArrayList<>();
  private long memoryBytes;
  private long diskBytes;
  /** A spill has a part of what it should have; the rest may still be in memory. Nothing is written after it. */
  private boolean failed;
  /** Error of the failed spill. */
  private Throwable failure;

  private static final class Spill {
    final File file;
    final long[] lengths;

    Spill(File file, long[] lengths) {
      this.file = file;
      this.lengths = lengths;
    }
  }

  /** {@code files}: makes the names. */
  Spills(Supplier<File> files, WriteContext context) {
    this.files = files;
    this.context = context;
  }

  void write(Content content) throws IOException {
    checkNotFailed();
    failed = true;
    File file = files.get();
    try (PartitionFile out = new PartitionFile(file, context, null)) {
      // Before it is written: a half of a spill is deleted too.
      spills.add(new Spill(file, out.lengths));
      content.writeTo(out);
      out.end();
      diskBytes += out.bytes();
      if (out.bytes() == 0) {
        // There is no file then.
        spills.remove(spills.size() - 1);
      }
    } catch (IOException | RuntimeException | Error e) {
      failure = e;
      throw e;
    }
    failed = false;
  }

  private void checkNotFailed() throws IOException {
    if (failed) {
      throw new IOException("a spill of this task has failed before", failure);
    }
  }

  /** Counts the bytes of memory that a spill has freed. */
  void freed(long bytes) {
    memoryBytes += bytes;
  }

  /** Bytes of memory that spills freed. */
  long memoryBytes() {
    return memoryBytes;
  }

  long diskBytes() {
    return diskBytes;
  }

  Open open() throws IOException {
    checkNotFailed();
    return new Open();
  }

  /** The spills, open for one reading from the first partition to the last. */
  final class Open implements Closeable {
    private final List<FileChannel> channels = new ArrayList<>();
    private final long[] positions = new long[spills.size()];

    private Open() throws IOException {
      try {
        for (Spill spill : spills) {
          channels.add(FileChannel.open(spill.file.toPath(), StandardOpenOption.READ));
        }
      } catch (IOException e) {
        close();
        throw e;
      }
    }

    /** Appends what the spills have of a partition. */
    void transfer(int partition, PartitionFile out) throws IOException {
      for (int i = 0; i < positions.length; i++) {
        long length = spills.get(i).lengths[partition];
        if (length > 0) {
          out.transfer(partition, channels.get(i), positions[i], length);
          positions[i] += length;
        }
      }
    }

    @Override
    public void close() throws IOException {
      for (FileChannel channel : channels) {
        channel.close();
      }
    }
  }

  /** Deletes the files. Idempotent. */
  @Override
  public void close() {
    for (Spill spill : spills) {
      if (spill.file.exists() && !spill.file.delete()) {
        LOG.error("The spill {} cannot be deleted", spill.file);
      }
    }
    spills.clear();
  }
}
