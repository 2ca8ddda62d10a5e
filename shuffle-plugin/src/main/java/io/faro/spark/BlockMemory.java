package io.faro.spark;

import java.io.InputStream;
import java.nio.ByteBuffer;

/** The counted bytes of one block, as {@link FaroManagedBuffer} sees them: io.faro.BlockBytes, or a test's. */
interface BlockMemory {
  long length();

  void retain();

  void release();

  InputStream inputStream();

  ByteBuffer nioByteBuffer();
}
