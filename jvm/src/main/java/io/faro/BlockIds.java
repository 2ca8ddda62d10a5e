package io.faro;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * The blocks of one request, encoded for native code in one direct buffer of wire BlockIds. There is no object per
 * block, and native code copies the buffer once. It grows to the size of its largest request, at most 768 KiB.
 * Reusable; for one thread at a time.
 */
public final class BlockIds {
  /** Maximum number of blocks of one request. */
  public static final int MAX_BLOCKS = 32_768;

  /** Size of each piece of a block in bytes; the last piece may be shorter. */
  public static final long PIECE_BYTES = 4 << 20;

  private static final int FIRST_BLOCKS = 256;

  private static final ThreadLocal<BlockIds> LOCAL = ThreadLocal.withInitial(BlockIds::new);

  private ByteBuffer ids = allocate(FIRST_BLOCKS);
  private int count;

  public BlockIds() {}

  /** Returns the calling thread's instance, cleared. */
  public static BlockIds local() {
    return LOCAL.get().clear();
  }

  private static ByteBuffer allocate(int blocks) {
    return ByteBuffer.allocateDirect(blocks * BlockIdDescriptor.BYTES).order(ByteOrder.LITTLE_ENDIAN);
  }

  public BlockIds clear() {
    count = 0;
    return this;
  }

  /**
   * Appends Spark's {@code shuffle_<shuffleId>_<mapId>_<startReduce>_<endReduce>}; the end is exclusive. Throws {@link
   * IllegalArgumentException} for a negative shuffle or reduce id, and {@link IllegalStateException} if the request is
   * full.
   */
  public BlockIds add(int shuffleId, long mapId, int startReduce, int endReduce) {
    return add(shuffleId, mapId, startReduce, endReduce, 0);
  }

  /**
   * Appends a piece of such a block: 1 is the first {@link #PIECE_BYTES} bytes, 2 the bytes after them, and so on; 0 is
   * the whole block. A piece beyond the block's end arrives empty.
   */
  public BlockIds add(int shuffleId, long mapId, int startReduce, int endReduce, int piece) {
    if ((shuffleId | startReduce | endReduce) < 0) {
      throw new IllegalArgumentException(
          "negative id in shuffle_" + shuffleId + "_" + mapId + "_" + startReduce + "_" + endReduce);
    }
    if (piece < 0) {
      throw new IllegalArgumentException("piece " + piece + " of a block; pieces are counted from 1, 0 is the whole");
    }
    int at = count * BlockIdDescriptor.BYTES;
    if (at == ids.capacity()) {
      grow();
    }
    BlockIdDescriptor.put(ids, at, shuffleId, mapId, startReduce, endReduce, piece);
    count++;
    return this;
  }

  private void grow() {
    if (count == MAX_BLOCKS) {
      throw new IllegalStateException("a request has at most " + MAX_BLOCKS + " blocks");
    }
    ByteBuffer larger = allocate(count * 2);
    ids.clear();
    larger.put(ids);
    larger.clear();
    ids = larger;
  }

  public int count() {
    return count;
  }

  /** Returns the encoded ids, from position 0. */
  ByteBuffer buffer() {
    return ids;
  }
}
