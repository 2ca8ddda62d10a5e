package io.faro.spark.transport;

import io.faro.BlockBatch;
import io.faro.BlockBytes;
import io.faro.rows.MemorySlices;
import io.faro.spark.read.groups.PartClient.NativeBytes;
import io.netty.buffer.Unpooled;
import java.io.InputStream;
import java.nio.ByteBuffer;
import org.apache.spark.network.buffer.ManagedBuffer;

/**
 * A fetched block as Spark's buffer on native memory, without a copy: Spark's stream reads the memory in place. The
 * reference count is that of the memory. The memory returns to the arena when Spark releases the buffer: when it closes
 * the stream, at the latest at the end of the task.
 */
public final class FaroManagedBuffer extends ManagedBuffer implements NativeBytes {
  private final BlockBytes memory;

  /** Takes over the caller's reference. */
  public FaroManagedBuffer(BlockBytes memory) {
    this.memory = memory;
  }

  /**
   * Block {@code index} of a batch as Spark's buffer, with one reference that the caller owns. Where the arena is
   * scarce it is a copy, if there is memory for one.
   */
  public static ManagedBuffer of(BlockBatch batch, int index) {
    BlockBytes bytes = batch.take(index);
    ManagedBuffer copy = batch.scarce() ? CopiedBlock.of(bytes) : null;
    return copy == null ? new FaroManagedBuffer(bytes) : copy;
  }

  @Override
  public long size() {
    return memory.length();
  }

  @Override
  public ByteBuffer nioByteBuffer() {
    if (memory.length() > Integer.MAX_VALUE) {
      throw new UnsupportedOperationException(
          "a block of " + memory.length() + " bytes is larger than a ByteBuffer can be (" + Integer.MAX_VALUE + ")");
    }
    return memory.nioByteBuffer();
  }

  @Override
  public void addTo(MemorySlices slices) {
    memory.addTo(slices);
  }

  @Override
  public InputStream createInputStream() {
    return memory.inputStream();
  }

  @Override
  public ManagedBuffer retain() {
    memory.retain();
    return this;
  }

  @Override
  public ManagedBuffer release() {
    memory.release();
    return this;
  }

  @Override
  public Object convertToNetty() {
    return Unpooled.wrappedBuffer(nioByteBuffer());
  }

  /** Abstract in ManagedBuffer from Spark 4.0 on, absent before: hence no annotation. */
  public Object convertToNettyForSsl() {
    return convertToNetty();
  }

  @Override
  public String toString() {
    return "FaroManagedBuffer(" + memory.length() + " bytes)";
  }
}
