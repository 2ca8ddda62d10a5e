package io.faro.rows;

/**
 * Compresses pieces of a partition's row stream to blocks, as Spark's writers do: from pages of Spark's memory to pages
 * of it, which are arrays or memory outside the heap. For one thread at a time.
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
   * Opens one; {@link #close} frees its native memory. {@code zstdLevel} is of no account for other codecs; {@code
   * blockBytes} is the longest piece, up to 32 MiB.
   */
  public static BlockCompressor open(RowCodec codec, int zstdLevel, int blockBytes) {
    return new BlockCompressor(RowsNative.openCompressor(codec.code, zstdLevel, blockBytes, NO_ROW_BLOCKS), false);
  }

  /**
   * The same; pieces for {@link #compressRows} may become row blocks (docs/row-block-format.md), which all readers must
   * know. {@code fields} are the columns of each row.
   */
  public static BlockCompressor openForRows(RowCodec codec, int zstdLevel, int blockBytes, int fields) {
    if (fields < 0) {
      throw new IllegalArgumentException("rows of " + fields + " columns");
    }
    // A word of null bits for 64 columns, and a word for each.
    int words = (int) Math.min(Integer.MAX_VALUE, (fields + 63L) / 64 + fields);
    return new BlockCompressor(RowsNative.openCompressor(codec.code, zstdLevel, blockBytes, words), true);
  }

  /** How many bytes a block of so many takes at most. */
  public int maxBytes(int bytes) {
    return RowsNative.maxBytes(handle, bytes);
  }

  /**
   * Compresses {@code bytes} bytes at {@code from} of {@code source} to {@code to} of {@code target}, another page,
   * which has {@code room} bytes there, at least {@link #maxBytes}. Positions are bytes of the array; addresses where
   * the array is {@code null}. Returns how many bytes it wrote: none for none.
   *
   * @throws IllegalArgumentException an array does not have these bytes, the room is too little, or both are one page.
   * @throws IllegalStateException it is closed.
   */
  public int compress(long[] source, long from, int bytes, long[] target, long to, int room) {
    return compress(source, from, bytes, target, to, room, false);
  }

  /** The same for bytes that begin at a row: where they are whole rows, they may become a row block. */
  public int compressRows(long[] source, long from, int bytes, long[] target, long to, int room) {
    return compress(source, from, bytes, target, to, room, true);
  }

  private int compress(long[] source, long from, int bytes, long[] target, long to, int room, boolean atRow) {
    // Native code may not read what it writes.
    if (source == target && (source != null || from < to + room && to < from + bytes)) {
      throw new IllegalArgumentException(bytes + " bytes at " + from + " and the room of " + room + " at " + to
          + " are of one page");
    }
    long made = RowsNative.compress(handle, source, from, bytes, target, to, room, atRow);
    codecBytes = (int) (made >>> Integer.SIZE);
    return (int) made;
  }

  /**
   * The bytes of the block that the codec alone makes of the last piece. For a row block this is an estimate, from the
   * pieces that were made in both ways, and never less than the row block's bytes.
   */
  public int codecBytes() {
    return codecBytes;
  }

  /** Whether pieces of whole rows may become row blocks. */
  public boolean packsRows() {
    return packsRows;
  }

  /** How many pieces became row blocks so far. */
  public long rowBlocks() {
    return RowsNative.rowBlocks(handle);
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
