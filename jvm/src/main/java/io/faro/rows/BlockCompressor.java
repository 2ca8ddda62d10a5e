package io.faro.rows;

/**
 * Compresses pieces of a partition's row stream to blocks, as Spark's writers do. Reads from and writes to pages of
 * Spark's memory, which are arrays or memory outside the heap. For one thread at a time.
 */
public final class BlockCompressor implements AutoCloseable {
  private static final int NO_ROW_BLOCKS = -1;

  private final long handle;
  private final boolean packsRows;
  private final byte[] end;
  private int codecBytes;
  private boolean closed;

  private BlockCompressor(long handle, boolean packsRows) {
    this.handle = handle;
    this.packsRows = packsRows;
    end = RowsNative.streamEnd(handle);
  }

  /**
   * Opens a compressor; {@link #close} frees its native memory. {@code zstdLevel} has no effect on other codecs; {@code
   * blockBytes} is the maximum length of a piece, up to 32 MiB.
   */
  public static BlockCompressor open(RowCodec codec, int zstdLevel, int blockBytes) {
    return new BlockCompressor(RowsNative.openCompressor(codec.code, zstdLevel, blockBytes, NO_ROW_BLOCKS), false);
  }

  /**
   * Opens a compressor whose {@link #compressRows} may make row blocks (docs/design/row-block-format.md), which all
   * readers
   * must support. {@code fields} is the number of columns of each row.
   */
  public static BlockCompressor openForRows(RowCodec codec, int zstdLevel, int blockBytes, int fields) {
    if (fields < 0) {
      throw new IllegalArgumentException("rows of " + fields + " columns");
    }
    // One word of null bits for each 64 columns, and one word for each column.
    int words = (int) Math.min(Integer.MAX_VALUE, (fields + 63L) / 64 + fields);
    return new BlockCompressor(RowsNative.openCompressor(codec.code, zstdLevel, blockBytes, words), true);
  }

  /** Returns the maximum size of the block of a piece of {@code bytes} bytes. */
  public int maxBytes(int bytes) {
    return RowsNative.maxBytes(handle, bytes);
  }

  /**
   * Compresses {@code bytes} bytes at {@code from} in {@code source} to {@code to} in {@code target}, another page,
   * which has {@code room} bytes there, at least {@link #maxBytes}. Positions are byte offsets in the array, or
   * addresses if the array is {@code null}. Returns the size of the block; 0 if {@code bytes} is 0.
   *
   * @throws IllegalArgumentException if an array does not have these bytes, the room is too small, or both are one
   * page.
   * @throws IllegalStateException if the compressor is closed.
   */
  public int compress(long[] source, long from, int bytes, long[] target, long to, int room) {
    return compress(source, from, bytes, target, to, room, false);
  }

  /**
   * Compresses bytes that begin at a row, like {@link #compress}. If they are whole rows, they may become a row block.
   */
  public int compressRows(long[] source, long from, int bytes, long[] target, long to, int room) {
    return compress(source, from, bytes, target, to, room, true);
  }

  private int compress(long[] source, long from, int bytes, long[] target, long to, int room, boolean atRow) {
    // Native code must not read bytes that it writes.
    if (source == target && (source != null || from < to + room && to < from + bytes)) {
      throw new IllegalArgumentException(bytes + " bytes at " + from + " and the room of " + room + " at " + to
          + " are of one page");
    }
    long made = RowsNative.compress(handle, source, from, bytes, target, to, room, atRow);
    codecBytes = (int) (made >>> Integer.SIZE);
    return (int) made;
  }

  /**
   * Returns the size of the block that the codec alone makes of the last piece. For a row block this is an estimate,
   * from the pieces that were made in both ways, and at least the row block's size.
   */
  public int codecBytes() {
    return codecBytes;
  }

  /** Returns whether pieces of whole rows may become row blocks. */
  public boolean packsRows() {
    return packsRows;
  }

  /** Returns the number of pieces that became row blocks. */
  public long rowBlocks() {
    return RowsNative.rowBlocks(handle);
  }

  /** Returns the bytes that end the stream of a partition with blocks; empty for some codecs. */
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
