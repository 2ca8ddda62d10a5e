package io.faro.spark.read;

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
}
