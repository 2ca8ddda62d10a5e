package io.faro.spark.read;

import java.io.IOException;
import java.io.InputStream;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.shuffle.FetchFailedException;

/** A group of parts that Spark's iterator has fetched. */
final class GroupSource implements Source, PartsStream.Bytes {
  private final GroupBuffer buffer;
  /** Closing it tells Spark's iterator that the group was read. */
  private final InputStream handle;
  private final Decompression decompression;
  private final RepeatedFetch repeat;
  private final PartFailure failure;
  private final Group group;
  /** By part: its bytes after it was fetched once more. */
  private final ManagedBuffer[] again;
  private boolean closed;

  GroupSource(GroupBuffer buffer, InputStream handle, Decompression decompression, RepeatedFetch repeat,
      PartFailure failure) {
    this.buffer = buffer;
    this.handle = handle;
    this.decompression = decompression;
    this.repeat = repeat;
    this.failure = failure;
    group = buffer.group;
    again = new ManagedBuffer[group.parts.count()];
  }

  /** Parts that did not arrive end the task before it has a record of the others. */
  @Override
  public InputStream open() throws FetchFailedException {
    for (int i = 0; i < again.length; i++) {
      ManagedBuffer part = part(i);
      if (part == null) {
        throw failure.failed(group.address, group.parts, i, "not fetched", buffer.cause(i));
      } else if (part.size() == 0) {
        throw failure.corrupt(group.address, group.parts, i, "no bytes arrived", part);
      }
    }
    return new PartsStream(this, 0, again.length);
  }

  @Override
  public ManagedBuffer part(int i) {
    return again[i] == null ? buffer.part(i) : again[i];
  }

  @Override
  public FetchFailedException unreadable(int i, IOException cause) {
    return failure.failed(group.address, group.parts, i, "its bytes cannot be read", cause);
  }

  @Override
  public boolean failed(Throwable problem, boolean decompressing, boolean handedOut)
      throws IOException, FetchFailedException {
    for (int i = 0; i < again.length; i++) {
      Throwable found = decompressing && again.length == 1 ? problem : problem(i);
      if (found == null) {
        continue;
      }
      if (handedOut || again[i] != null) {
        throw failure.corrupt(group.address, group.parts, i, found.toString(), part(i));
      }
      keep(i, repeat.fetch(group, i, found.toString()));
      return true;
    }
    return false;
  }

  /** What is wrong with a part, looked at alone; {@code null}: nothing. */
  private synchronized Throwable problem(int i) throws IOException {
    checkOpen();
    return decompression.problem(PartsStream.open(part(i)));
  }

  private synchronized void keep(int i, ManagedBuffer bytes) {
    if (closed) {
      bytes.release();
    }
    checkOpen();
    again[i] = bytes;
  }

  /** The task's end may close this while another thread reads. */
  private void checkOpen() {
    if (closed) {
      throw new IllegalStateException("the task has ended");
    }
  }

  @Override
  public synchronized void close() throws IOException {
    if (!closed) {
      closed = true;
      for (ManagedBuffer part : again) {
        if (part != null) {
          part.release();
        }
      }
      handle.close();
    }
  }
}
