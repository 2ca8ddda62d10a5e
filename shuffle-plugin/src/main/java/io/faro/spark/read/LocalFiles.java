package io.faro.spark.read;

import io.faro.OutputFiles;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockManagerId;

/** Files of one executor's map outputs, on this host. */
interface LocalFiles {
  /** The executor. */
  BlockManagerId address();

  /** The files of a map output; {@code null}: there is none. */
  OutputFiles find(int shuffle, long map) throws Exception;

  /** A block as Spark reads it. */
  ManagedBuffer bySpark(BlockId block) throws Exception;
}
