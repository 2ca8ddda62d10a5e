package io.faro.rows;

/**
 * Compresses pieces of a partition's row stream to blocks, as Spark's writers do: from pages of Spark's memory to pages
 * of it, which are arrays or memory outside the heap. For one thread at a time.
 */
public final class BlockCompressor implements AutoCloseable {
  private final long handle;
  private final byte[] end;
  private boolean closed;

  private BlockCompressor(long handle) {
    this.handle = handle;
    end = RowsNative.streamEnd(handle);
  }

  /**
   * Opens one; {@link #close} frees its native memory. {@code zstdLevel} is of no account for other codecs; {@code
   * blockBytes} is the longest piece, up to 32 MiB.
   */
  public static BlockCompressor open(RowCodec codec, int zstdLevel, int blockBytes) {
    return new BlockCompressor(RowsNative.openCompressor(codec.code, zstdLevel, blockBytes));
  }

  /** How many bytes a block of so many takes at most. */
  public int mostBytes(int bytes) {
    return RowsNative.mostBytes(handle, bytes);
  }

  /**
   * Compresses {@code bytes} bytes at {@code from} of {@code source} to {@code to} of {@code target}, another page,
   * which has {@code room} bytes there, at least {@link #mostBytes}. Positions are bytes of the array; addresses where
   * the array is {@code null}. Returns how many bytes it wrote: none for none.
   *
   * @throws IllegalArgumentException an array does not have these bytes, the room is too little, or both are one page.
   * @throws IllegalStateException it is closed.
   */
  public int compress(long[] source, long from, int bytes, long[] target, long to, int room) {
    // Native code may not read what it writes.
    if (source == target && (source != null || from < to + room && to < from + bytes)) {
      throw new IllegalArgumentException(bytes + " bytes at " + from + " and the room of " + room + " at " + to
          + " are of one page");
    }
    return RowsNative.compress(handle, source, from, bytes, target, to, room);
  }

  /** What stands behind the blocks of a partition; empty for some codecs. */
  public byte[] end() {
    return end;
  }

  @Override
  public void close() {
    if (!closed) {
      closed = true;
      RowsNative.closeCompressor(handle);
    }
  }
}
