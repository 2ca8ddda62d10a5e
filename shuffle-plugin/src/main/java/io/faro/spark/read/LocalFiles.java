package io.faro.spark.read;

import java.io.IOException;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.storage.BlockManagerId;

/** Files of one executor's map outputs, on this host. */
interface LocalFiles {
  /** The executor. */
  BlockManagerId address();

  /** Makes the files of a part's map output known to the endpoint; false: there are none. */
  boolean resolve(Parts parts, int i) throws Exception;

  /** A part as Spark reads it. */
  ManagedBuffer bySpark(Parts parts, int i) throws Exception;

  /** Whether there is another way to the bytes than these files. */
  default boolean hasOtherWay() {
    return false;
  }

  /**
   * A part by the other way; {@code corrupt}: these files have other bytes than were written. The bytes are on the
   * heap.
   *
   * @throws IOException they do not arrive; its cause says why
   */
  default ManagedBuffer otherWay(Parts parts, int i, String problem, boolean corrupt) throws IOException {
    throw new IllegalStateException("there is no other way to " + parts.id(i));
  }

  /** Counts parts, and bytes of parts, that were read from the files. */
  default void count(ShuffleReadMetricsReporter metrics, long parts, long bytes) {
    metrics.incLocalBlocksFetched(parts);
    metrics.incLocalBytesRead(bytes);
  }
}
