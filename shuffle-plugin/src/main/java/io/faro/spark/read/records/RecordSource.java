package io.faro.spark.read.records;

import io.faro.Nullable;
import java.io.IOException;
import java.io.InputStream;
import org.apache.spark.shuffle.FetchFailedException;

/** Parts whose bytes are decompressed and deserialised as one stream of records, and what happens if that fails. */
interface RecordSource {
  /**
   * The bytes of the parts, one part after the other, from the first one on; null if it has no parts (any more).
   * Closing the stream releases no part.
   */
  @Nullable InputStream open() throws IOException, FetchFailedException;

  /**
   * The stream could not be read to its end. True: {@link #open} it anew, a part was replaced or left out. False: each
   * part, looked at alone, can be decompressed, so that the problem is not of the shuffle. Throws what ends the task
   * otherwise.
   *
   * @param problem what was thrown
   * @param decompressing whether the decompressor threw it; otherwise the deserialiser did
   * @param handedOut whether the task has records of these parts, so that they must not be read again
   */
  boolean failed(Throwable problem, boolean decompressing, boolean handedOut) throws IOException, FetchFailedException;

  /** Releases the bytes. Idempotent. */
  void close() throws IOException;
}
