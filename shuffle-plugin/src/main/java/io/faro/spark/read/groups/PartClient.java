package io.faro.spark.read.groups;

import io.faro.rows.MemorySlices;
import io.faro.spark.read.places.Parts;

/** Fetches parts of other executors' map outputs. */
public interface PartClient {
  /** Starts to fetch the parts and returns. They are given up when the task of the calling thread ends. */
  void fetch(String host, int port, String executor, Parts parts, BlockListener listener);

  /** Fetches parts that arrived damaged once more, by another way than before if there is one. */
  void fetchAgain(String host, int port, String executor, Parts parts, BlockListener listener);

  /** A buffer whose bytes lie in native memory. */
  interface NativeBytes {
    /** Appends the bytes as one part. They are there as long as the caller holds a reference to the buffer. */
    void addTo(MemorySlices slices);
  }
}
