package io.faro.spark;

import io.netty.buffer.Unpooled;
import java.io.InputStream;
import java.nio.ByteBuffer;
import org.apache.spark.network.buffer.ManagedBuffer;

/**
 * A fetched block as Spark wants it, on native memory, without a copy: the stream that Spark decompresses from reads
 * the memory in place. References are the memory's own, so there is one count and no second truth; the price is that
 * memory returns to the arena only when Spark lets go, which the stream's close and the task's end both see to.
 */
final class FaroManagedBuffer extends ManagedBuffer {
  private final BlockMemory memory;

  /** Takes over the caller's reference. */
  FaroManagedBuffer(BlockMemory memory) {
    this.memory = memory;
  }

  @Override
  public long size() {
    return memory.length();
  }

  @Override
  public ByteBuffer nioByteBuffer() {
    if (memory.length() > Integer.MAX_VALUE) {
      throw new UnsupportedOperationException(
          "a block of " + memory.length() + " bytes does not fit into one ByteBuffer (" + Integer.MAX_VALUE + ")");
    }
    return memory.nioByteBuffer();
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
