package io.faro.spark.read;

import io.faro.rows.MemorySlices;

/** A buffer whose bytes lie in native memory. */
public interface NativeBytes {
  /** Appends the bytes as one part. They are there as long as the caller holds a reference to the buffer. */
  void addTo(MemorySlices slices);
}
