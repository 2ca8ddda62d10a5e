package io.faro.spark.fetch;

import io.faro.BlockBytes;
import io.faro.SliceSink;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.nio.ByteBuffer;

/** Counted bytes on the heap; a reference too few or too many is an exception, as with native memory. */
final class FakeMemory implements BlockBytes {
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
  public BlockBytes retain() {
    check();
    references++;
    return this;
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
  public void addTo(SliceSink slices) {
    throw new UnsupportedOperationException("bytes on the heap");
  }

  @Override
  public void copyTo(ByteBuffer target) {
    check();
    target.put(bytes);
  }
}
