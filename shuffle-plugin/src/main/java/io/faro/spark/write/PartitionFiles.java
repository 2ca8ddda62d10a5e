package io.faro.spark.write;

import io.faro.Nullable;
import java.io.Closeable;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.StandardOpenOption;
import java.util.function.Supplier;
import org.apache.spark.unsafe.Platform;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The blocks of one map output of few partitions that are not in memory: a file for each partition, as Spark's own
 * writer of few partitions has. A partition's bytes are appended in their order, so that they are copied in one piece
 * at the end, however often the writer found no memory.
 */
final class PartitionFiles implements Closeable {
  private static final Logger LOG = LoggerFactory.getLogger(PartitionFiles.class);
  private static final int BUFFER_BYTES = 64 << 10;

  private final Supplier<File> names;
  private final WriteContext context;
  private final File[] files;
  private final FileChannel[] channels;
  private final long[] lengths;
  /** Bytes of one partition on their way; null before the first. */
  @Nullable private byte[] buffer;
  private int buffered;
  /** A write has failed, and a part of its bytes may be in the file. Nothing is written after it. */
  private boolean failed;

  /** {@code names}: makes the names of the files. */
  PartitionFiles(Supplier<File> names, WriteContext context) {
    this.names = names;
    this.context = context;
    files = new File[context.partitions];
    channels = new FileChannel[context.partitions];
    lengths = new long[context.partitions];
  }

  /** Appends bytes of a page, or of memory outside the heap; {@link #flush} comes before another partition's. */
  void append(int partition, Object base, long offset, int length) throws IOException {
    if (buffer == null) {
      buffer = new byte[BUFFER_BYTES];
    }
    for (int done = 0; done < length;) {
      if (buffered == BUFFER_BYTES) {
        flush(partition);
      }
      int now = Math.min(length - done, BUFFER_BYTES - buffered);
      Platform.copyMemory(base, offset + done, buffer, Platform.BYTE_ARRAY_OFFSET + buffered, now);
      buffered += now;
      done += now;
    }
  }

  /** Writes what was appended of the partition. */
  void flush(int partition) throws IOException {
    if (buffered == 0) {
      return;
    }
    checkNotFailed();
    failed = true;
    context.beforeWrite();
    context.sums.update(partition, buffer, 0, buffered);
    long started = System.nanoTime();
    FileChannel to = open(partition);
    ByteBuffer all = ByteBuffer.wrap(buffer, 0, buffered);
    while (all.hasRemaining()) {
      to.write(all);
    }
    context.wrote(started);
    lengths[partition] += buffered;
    buffered = 0;
    failed = false;
  }

  private void checkNotFailed() throws IOException {
    if (failed) {
      throw new IOException("a write of this task to a partition's file has failed before");
    }
  }

  private FileChannel open(int partition) throws IOException {
    if (channels[partition] == null) {
      files[partition] = names.get();
      channels[partition] = FileChannel.open(files[partition].toPath(), StandardOpenOption.CREATE,
          StandardOpenOption.READ, StandardOpenOption.WRITE, StandardOpenOption.TRUNCATE_EXISTING);
    }
    return channels[partition];
  }

  /** Appends what the partition's file has and deletes it. Returns whether it had anything. */
  boolean transfer(int partition, PartitionFile out) throws IOException {
    checkNotFailed();
    if (lengths[partition] == 0) {
      return false;
    }
    out.transfer(partition, channels[partition], 0, lengths[partition]);
    remove(partition);
    return true;
  }

  private void remove(int partition) throws IOException {
    FileChannel channel = channels[partition];
    File file = files[partition];
    channels[partition] = null;
    files[partition] = null;
    try {
      if (channel != null) {
        channel.close();
      }
    } finally {
      if (file != null && file.exists() && !file.delete()) {
        LOG.error("The unfinished file {} of a partition cannot be deleted", file);
      }
    }
  }

  /** Deletes the files that are left. Idempotent. */
  @Override
  public void close() throws IOException {
    IOException first = null;
    for (int i = 0; i < files.length; i++) {
      try {
        remove(i);
      } catch (IOException e) {
        first = first == null ? e : first;
      }
    }
    if (first != null) {
      throw first;
    }
  }
}
