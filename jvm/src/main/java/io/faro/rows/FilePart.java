package io.faro.rows;

import io.faro.Endpoint;
import io.faro.Nullable;

/** One part of a map output whose files an endpoint knows. It holds no file open. */
public final class FilePart {
  private final Endpoint endpoint;
  private final int shuffle;
  private final long[] triple;
  private final long bytes;

  private FilePart(Endpoint endpoint, int shuffle, long[] triple, long bytes) {
    this.endpoint = endpoint;
    this.shuffle = shuffle;
    this.triple = triple;
    this.bytes = bytes;
  }

  /**
   * Finds partitions {@code start} to {@code end} (exclusive) of a map output; null if the endpoint does not know
   * its files, or they do not have the part.
   */
  @Nullable public static FilePart find(Endpoint endpoint, int shuffle, long map, int start, int end) {
    long bytes = RowsNative.localBytes(endpoint.nativeHandle(), shuffle, map, start, end);
    return bytes < 0 ? null : new FilePart(endpoint, shuffle, new long[] {map, start, end}, bytes);
  }

  /** Returns its size in bytes. */
  public long bytes() {
    return bytes;
  }

  /**
   * Reads {@code length} bytes from {@code position} on, to {@code offset} in {@code to}. Returns {@code false} if the
   * endpoint no longer knows the files, or they cannot be read.
   */
  public boolean read(long position, byte[] to, int offset, int length) {
    return RowsNative.readLocalAt(endpoint.nativeHandle(), shuffle, triple, position, to, offset, length);
  }
}
