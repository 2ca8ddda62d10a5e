package io.faro.spark.read.groups;

import io.faro.rows.MemorySlices;
import io.faro.spark.read.places.Parts;
import org.apache.spark.network.buffer.ManagedBuffer;

/** Fetches parts of other executors' map outputs. */
public interface PartClient {
  /** Gets the results of one call; from any thread, each part once. */
  interface Listener {
    /** The listener owns the buffer's one reference. */
    void arrived(int part, ManagedBuffer bytes);

    void failed(int part, Throwable cause);
  }

  /** Starts to fetch the parts and returns. They are given up when the task of the calling thread ends. */
  void fetch(String host, int port, String executor, Parts parts, Listener listener);

  /** Fetches parts that arrived damaged once more, by another way than before if there is one. */
  void fetchAgain(String host, int port, String executor, Parts parts, Listener listener);

  /** A buffer whose bytes lie in native memory. */
  interface NativeBytes {
    /** Appends the bytes as one part. They are there as long as the caller holds a reference to the buffer. */
    void addTo(MemorySlices slices);
  }
}
