package io.faro.spark.read;

import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.network.buffer.ManagedBuffer;

/**
 * The bytes of a group's parts. Some of them may have failed: Spark's iterator would report the failure of a block that
 * does not exist, so a group always arrives, and its reader reports the part.
 */
final class GroupBuffer extends ManagedBuffer {
  final Group group;
  /** {@code null}: that part failed. */
  private final ManagedBuffer[] parts;
  /** {@code null}: no part failed. */
  private final Throwable[] causes;
  private final AtomicInteger references = new AtomicInteger(1);
  private final long size;

  /** Takes over the references of the parts. */
  GroupBuffer(Group group, ManagedBuffer[] parts, Throwable[] causes) {
    this.group = group;
    this.parts = parts;
    this.causes = causes;
    long sum = 0;
    for (ManagedBuffer part : parts) {
      sum += part == null ? 0 : part.size();
    }
    size = sum;
  }

  /** {@code null}: the part failed. */
  ManagedBuffer part(int i) {
    return parts[i];
  }

  Throwable cause(int i) {
    return causes == null ? null : causes[i];
  }

  /** At least 1: Spark's iterator takes an empty block for a fault of its own kind. */
  @Override
  public long size() {
    return Math.max(1, size);
  }

  @Override
  public InputStream createInputStream() {
    return new GroupStream(this);
  }

  @Override
  public ManagedBuffer retain() {
    references.incrementAndGet();
    return this;
  }

  @Override
  public ManagedBuffer release() {
    if (references.decrementAndGet() == 0) {
      for (ManagedBuffer part : parts) {
        if (part != null) {
          part.release();
        }
      }
    }
    return this;
  }

  /** Spark's iterator calls none of these for a block that it reads. */
  @Override
  public ByteBuffer nioByteBuffer() {
    throw new UnsupportedOperationException("a group of blocks is decoded in place");
  }

  @Override
  public Object convertToNetty() {
    return nioByteBuffer();
  }

  /** Abstract in ManagedBuffer from Spark 4.0 on, absent before: hence no annotation. */
  public Object convertToNettyForSsl() {
    return convertToNetty();
  }
}
