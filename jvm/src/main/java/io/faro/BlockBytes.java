package io.faro;

import java.io.InputStream;
import java.nio.ByteBuffer;

/**
 * The bytes of one block with a reference count: it starts with one reference, and the last release frees the bytes.
 * Thread-safe. All methods but {@link #length} throw {@link IllegalStateException} when all references are gone.
 */
public interface BlockBytes {
  long length();

  /** Adds a reference. */
  BlockBytes retain();

  /** Removes a reference; the last one frees the bytes. */
  void release();

  /** Returns a stream over the bytes. The stream holds no reference: closing it releases nothing. */
  InputStream inputStream();

  /**
   * Returns a read-only buffer: a view if the block lies in one slice, else a copy. A view is valid until the last
   * release; after it, its content is undefined. A block of 2 GiB or more throws {@link UnsupportedOperationException};
   * read it by {@link #inputStream}.
   */
  ByteBuffer nioByteBuffer();

  /** Appends the addresses of the bytes, as one part. They are valid while the caller holds a reference. */
  void addTo(SliceSink slices);

  /** Copies the bytes into {@code target}, which must have room for all of them. */
  void copyTo(ByteBuffer target);
}
