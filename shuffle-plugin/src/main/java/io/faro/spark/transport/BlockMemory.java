package io.faro.spark.transport;

import io.faro.rows.MemorySlices;
import java.io.InputStream;
import java.nio.ByteBuffer;

/** The bytes of one block with a reference count: io.faro.BlockBytes, or a fake in tests. */
public interface BlockMemory {
  long length();

  void retain();

  void release();

  InputStream inputStream();

  ByteBuffer nioByteBuffer();

  /** Appends the bytes as one part. */
  void addTo(MemorySlices slices);
}
