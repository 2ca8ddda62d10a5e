package io.faro.spark.fetch;

import io.faro.rows.MemorySlices;
import io.faro.spark.transport.BlockMemory;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.nio.ByteBuffer;

/** Counted bytes on the heap; a reference too few or too many is an exception, as with native memory. */
final class FakeMemory implements BlockMemory {
  final byte[] bytes;
  int references = 1;

  FakeMemory(byte[] bytes) {
    this.bytes = bytes;
  }

  private void check() {
    if (references <= 0) {
      throw new IllegalStateException("all references are gone");
    }
  }

  @Override
  public long length() {
    return bytes.length;
  }

  @Override
  public void retain() {
    check();
    references++;
  }

  @Override
  public void release() {
    check();
    references--;
  }

  @Override
  public InputStream inputStream() {
    check();
    return new ByteArrayInputStream(bytes);
  }

  @Override
  public ByteBuffer nioByteBuffer() {
    check();
    return ByteBuffer.wrap(bytes).asReadOnlyBuffer();
  }

  @Override
  public void addTo(MemorySlices slices) {
    throw new UnsupportedOperationException("bytes on the heap");
  }
}
