package io.faro.spark.write;

/**
 * How large each buffer of a writer is, in bytes. All have the same size: they begin small and become larger, up to
 * the size of a block or to their part of {@link BufferLimit}.
 */
final class BufferSizes {
  /** Minimum size of one buffer. */
  static final int MIN_ROOM = 64;
  /** First size of all buffers together: little, because a new page is filled with zeros. */
  private static final int FIRST_BYTES = 256 << 10;
  /** Full buffers become larger by this factor. */
  private static final int GROWTH = 4;

  private final int partitions;
  private final int blockBytes;
  /** Limit of all buffers together. */
  private final BufferLimit limit;

  /** {@code blockBytes}: maximum of one buffer; {@code maxBytes}: of all together. */
  BufferSizes(int partitions, int blockBytes, long maxBytes) {
    this.partitions = partitions;
    this.blockBytes = blockBytes;
    limit = new BufferLimit(maxBytes);
  }

  /** The smallest size, with which buffers begin. */
  int first() {
    return Math.max(MIN_ROOM, Math.min(blockBytes, FIRST_BYTES / partitions / Long.BYTES * Long.BYTES));
  }

  /** The next size after {@code room}; not above it: they have their full size. */
  int next(int room, long rowBytes) {
    long each = limit.bytes(rowBytes) / partitions / Long.BYTES * Long.BYTES;
    long max = Math.max(MIN_ROOM, Math.min(blockBytes, each));
    return (int) Math.min(max, (long) GROWTH * room);
  }

  /** Spark had no memory for {@code wanted} bytes: the buffers go on with {@code kept} together. */
  void refused(long wanted, long kept, long rowBytes) {
    limit.refused(wanted, kept, rowBytes);
  }
}
