package io.faro;

import java.nio.ByteBuffer;

/** Receives the places of bytes in native memory, slice by slice, from {@link BlockBytes#addTo}. */
public interface SliceSink {
  /** Appends {@code bytes} bytes of a direct buffer from {@code offset} on. */
  void add(ByteBuffer direct, int offset, int bytes);

  /** The slices since the last call are one part. */
  void endPart();
}
