package io.faro.spark.write;

import io.faro.Nullable;
import io.faro.StagedOutput;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.StandardOpenOption;
import org.apache.spark.unsafe.Platform;

/** A file that is written partition by partition: a spill, or the data file. It exists from its first byte on. */
final class PartitionFile implements AutoCloseable {
  private static final int BUFFER_BYTES = 256 << 10;
  /** One call of the system moves so much at most: a killed task ends after it. */
  private static final long TRANSFER_BYTES = 16L << 20;

  final long[] lengths;
  private final File file;
  private final WriteContext context;
  /** Takes a copy of the bytes; null if there is no copy. */
  @Nullable private final StagedOutput copy;
  private final byte[] buffer = new byte[BUFFER_BYTES];
  private int buffered;
  private long bytes;
  /** Null if nothing was written yet. */
  @Nullable private FileChannel channel;

  /** The context's checksums are updated with what {@link #append} gets. */
  PartitionFile(File file, WriteContext context, @Nullable StagedOutput copy) {
    lengths = new long[context.partitions];
    this.file = file;
    this.context = context;
    this.copy = copy;
  }

  /** Appends bytes of a page, or of memory outside the heap. */
  void append(int partition, Object base, long offset, int length) throws IOException {
    added(partition, length);
    for (int done = 0; done < length;) {
      if (buffered == BUFFER_BYTES) {
        flush();
      }
      int now = Math.min(length - done, BUFFER_BYTES - buffered);
      Platform.copyMemory(base, offset + done, buffer, Platform.BYTE_ARRAY_OFFSET + buffered, now);
      context.sums.update(partition, buffer, buffered, now);
      buffered += now;
      done += now;
    }
  }

  void append(int partition, byte[] all) throws IOException {
    append(partition, all, Platform.BYTE_ARRAY_OFFSET, all.length);
  }

  /** Appends bytes of a spill, whose checksum was taken when the spill was written. */
  void transfer(int partition, FileChannel from, long position, long length) throws IOException {
    flush();
    added(partition, length);
    if (copy != null) {
      copy.end();
    }
    FileChannel to = open();
    for (long done = 0; done < length;) {
      context.beforeWrite();
      long started = System.nanoTime();
      long now = from.transferTo(position + done, Math.min(TRANSFER_BYTES, length - done), to);
      context.wrote(started);
      if (now <= 0) {
        throw new IOException("a spill ends " + (length - done) + " bytes early");
      }
      done += now;
    }
  }

  private void added(int partition, long length) {
    lengths[partition] += length;
    bytes += length;
  }

  long bytes() {
    return bytes;
  }

  private FileChannel open() throws IOException {
    if (channel == null) {
      channel = FileChannel.open(file.toPath(),
          StandardOpenOption.CREATE, StandardOpenOption.WRITE, StandardOpenOption.TRUNCATE_EXISTING);
    }
    return channel;
  }

  private void flush() throws IOException {
    if (buffered == 0) {
      return;
    }
    context.beforeWrite();
    long started = System.nanoTime();
    ByteBuffer all = ByteBuffer.wrap(buffer, 0, buffered);
    while (all.hasRemaining()) {
      open().write(all);
    }
    context.wrote(started);
    if (copy != null) {
      copy.append(buffer, 0, buffered);
    }
    buffered = 0;
  }

  /** Everything was appended: writes what is left, onto the disk if this is configured, and closes the file. */
  void end() throws IOException {
    flush();
    if (channel != null && context.sync) {
      long started = System.nanoTime();
      // With the file's length, as Spark's DiskBlockObjectWriter does it.
      channel.force(true);
      context.wrote(started);
    }
    close();
  }

  /** Closes the file; without {@link #end} it is a part of what was appended. Idempotent. */
  @Override
  public void close() throws IOException {
    if (channel != null) {
      channel.close();
    }
  }
}
