package io.faro.spark.read;

import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.storage.BlockManagerId;

/** Files of one executor's map outputs, on this host. */
interface LocalFiles {
  /** The executor. */
  BlockManagerId address();

  /** Makes the files of a part's map output known to the endpoint; false: there are none. */
  boolean resolve(Parts parts, int i) throws Exception;

  /**
   * Returns how often {@link #resolve} may be called for one part before the part is given up: more than once where the
   * endpoint may close the files again before they are read.
   */
  default int tries() {
    return 1;
  }

  /** A part as Spark reads it. */
  ManagedBuffer bySpark(Parts parts, int i) throws Exception;

  /**
   * Leaves a part to be fetched over the network when all files were read; false: there is no other way to it than
   * these files. {@code corrupt}: they have other bytes than were written.
   */
  default boolean leave(Parts parts, int i, String problem, boolean corrupt) {
    return false;
  }

  /** A part's file was lost while it was read. True: the part can be fetched over the network. */
  default boolean lost(Parts parts, int i, String problem) {
    return false;
  }

  /** Counts parts, and bytes of parts, that were read from the files. */
  default void count(ShuffleReadMetricsReporter metrics, long parts, long bytes) {
    metrics.incLocalBlocksFetched(parts);
    metrics.incLocalBytesRead(bytes);
  }
}
