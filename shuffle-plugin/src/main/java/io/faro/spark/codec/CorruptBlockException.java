package io.faro.spark.codec;

import java.io.IOException;

/**
 * A block of a compressed stream is not what was written. An {@code IOException}, by which Spark's fetch iterator knows
 * corruption: it fetches the shuffle block again, and then ends the task with a FetchFailed. Never an {@code
 * EOFException}, which {@code UnsafeRowSerializer} takes for the end of the rows.
 */
public final class CorruptBlockException extends IOException {
  private static final long serialVersionUID = 1;

  /** {@code block} and {@code offset}, both from 0, and the header's token; -1: it does not begin as a header. */
  CorruptBlockException(long block, long offset, int token, BlockFault fault) {
    super("Stream is corrupted: block " + block + " at byte " + offset
        + (token < 0 ? "" : ", method 0x" + Integer.toHexString(token & 0xf0)) + ": " + fault.getMessage(), fault);
  }
}
