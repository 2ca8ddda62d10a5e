package io.faro;

import java.io.InputStream;
import java.nio.ByteBuffer;

/** The bytes of one block, counted: born with one reference, gone with the last. */
public final class BlockBytes {
  BlockBytes() {}

  public long length() {
    throw new UnsupportedOperationException();
  }

  /** One more reference. Throws {@link IllegalStateException} when all are gone. */
  public BlockBytes retain() {
    throw new UnsupportedOperationException();
  }

  /** One reference less; with the last one the bytes go. Throws {@link IllegalStateException} when all are gone. */
  public void release() {
    throw new UnsupportedOperationException();
  }

  /** Reads the bytes from their start. Holds no reference of its own: closing it releases nothing. */
  public InputStream inputStream() {
    throw new UnsupportedOperationException();
  }

  /**
   * A read-only view (no copy when the block lies in one segment, else a copy). A view is good until the last
   * release; after it, its content is undefined.
   */
  public ByteBuffer nioByteBuffer() {
    throw new UnsupportedOperationException();
  }
}
