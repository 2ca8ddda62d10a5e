package io.faro.spark.read.rows;

import io.faro.rows.RowReader;
import java.io.IOException;
import org.apache.spark.shuffle.FetchFailedException;

/** Parts whose bytes are decoded to rows, and what happens if that fails. */
interface RowSource {
  /** Gives the reader the next bytes; false: there are none left. */
  boolean feed(RowReader reader) throws IOException, FetchFailedException;

  /**
   * Tells the reader the files of a part, which it does not know. Returns whether the reader knows them now; if not,
   * {@link #feed} is called again.
   */
  default boolean resolve(int part) throws IOException, FetchFailedException {
    throw new IllegalStateException("only files are resolved");
  }

  /** The reader read so many bytes of files. */
  default void read(long fileBytes) {}

  /**
   * A part cannot be decoded, and the reader has dropped all that it was given. Returns if the next {@link #feed} goes
   * on with this part; otherwise it throws what ends the task.
   */
  void failed(int part, String problem, boolean corrupt, boolean handedOut) throws IOException, FetchFailedException;

  /** Releases the bytes. Idempotent. */
  void close() throws IOException;
}
