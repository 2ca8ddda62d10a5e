package io.faro.rows;

import io.faro.BlockIds;
import io.faro.Endpoint;

/** Reads parts of map outputs from files that an endpoint knows. Reusable; for one thread at a time. */
public final class FileParts {
  /** Maximum number of parts that one call reads. */
  private static final int MAX_PARTS = 1024;

  private final byte[] bytes;
  private final long[] triples = new long[3 * MAX_PARTS];
  private final long[] lengths = new long[MAX_PARTS];

  /** {@code max} is the maximum number of bytes that one call reads. */
  public FileParts(int max) {
    bytes = new byte[max];
  }

  /**
   * Reads parts {@code first} to {@code end} (exclusive) of one shuffle. Stops at the first one that does not fit, that
   * the endpoint does not know, or that cannot be read. Returns how many were read.
   */
  public int read(Endpoint endpoint, BlockIds parts, int first, int end) {
    int count = Math.min(MAX_PARTS, end - first);
    int shuffle = shuffleOf(parts, first, count, triples);
    return RowsNative.readLocal(endpoint.nativeHandle(), shuffle, triples, count, bytes, lengths);
  }

  /** Writes map id and range of partitions of each part, as native code takes them, and returns the shuffle. */
  static int shuffleOf(BlockIds parts, int first, int count, long[] triples) {
    for (int i = 0; i < count; i++) {
      triples[3 * i] = parts.map(first + i);
      triples[3 * i + 1] = parts.start(first + i);
      triples[3 * i + 2] = parts.end(first + i);
    }
    return count == 0 ? 0 : parts.shuffle(first);
  }

  /** Returns the bytes of the parts that the last {@link #read} read, one part after the other. */
  public byte[] bytes() {
    return bytes;
  }

  /** Returns the size of the i-th of these parts, in bytes. */
  public int length(int i) {
    return (int) lengths[i];
  }
}
