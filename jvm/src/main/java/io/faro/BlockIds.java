package io.faro;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Ids of blocks in the wire's form, one after the other and without an object for each. For one thread at a time while
 * it grows.
 */
public final class BlockIds {
  /** Maximum number of blocks of one request. */
  public static final int MAX_BLOCKS = 32_768;

  /** Size of each piece of a block in bytes; the last piece may be shorter. */
  public static final long PIECE_BYTES = 4 << 20;

  /** What native code reads; it copies the buffer once. At most 768 KiB. */
  private static final ThreadLocal<ByteBuffer> DIRECT = new ThreadLocal<>();

  private ByteBuffer ids;
  private int count;

  public BlockIds() {
    this(8);
  }

  /** With room for {@code blocks}; more of them make it grow. */
  public BlockIds(int blocks) {
    ids = littleEndian(ByteBuffer.allocate(blocks * BlockIdDescriptor.BYTES));
  }

  private static ByteBuffer littleEndian(ByteBuffer buffer) {
    return buffer.order(ByteOrder.LITTLE_ENDIAN);
  }

  /**
   * Appends Spark's {@code shuffle_<shuffleId>_<mapId>_<startReduce>_<endReduce>}; the end is exclusive. Throws {@link
   * IllegalArgumentException} for a negative shuffle or reduce id.
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
      ByteBuffer larger = littleEndian(ByteBuffer.allocate(Math.max(1, 2 * count) * BlockIdDescriptor.BYTES));
      larger.put(ids.array());
      ids = larger;
    }
    BlockIdDescriptor.put(ids, at, shuffleId, mapId, startReduce, endReduce, piece);
    count++;
    return this;
  }

  /** Moves the end of the last block's range of partitions. */
  public void extendLast(int endReduce) {
    ids.putInt((count - 1) * BlockIdDescriptor.BYTES + BlockIdDescriptor.END_REDUCE, endReduce);
  }

  /** Returns a copy of the blocks at these positions. */
  public BlockIds subset(int[] positions) {
    BlockIds some = new BlockIds(positions.length);
    for (int i : positions) {
      some.add(shuffle(i), map(i), start(i), end(i), piece(i));
    }
    return some;
  }

  /** Returns a copy of {@code count} blocks from position {@code first} on. */
  public BlockIds range(int first, int count) {
    BlockIds some = new BlockIds(count);
    some.count = count;
    System.arraycopy(ids.array(), first * BlockIdDescriptor.BYTES, some.ids.array(), 0, some.ids.capacity());
    return some;
  }

  public int count() {
    return count;
  }

  public int shuffle(int i) {
    return ids.getInt(i * BlockIdDescriptor.BYTES + BlockIdDescriptor.SHUFFLE_ID);
  }

  public long map(int i) {
    return ids.getLong(i * BlockIdDescriptor.BYTES + BlockIdDescriptor.MAP_ID);
  }

  public int start(int i) {
    return ids.getInt(i * BlockIdDescriptor.BYTES + BlockIdDescriptor.START_REDUCE);
  }

  /** Exclusive. */
  public int end(int i) {
    return ids.getInt(i * BlockIdDescriptor.BYTES + BlockIdDescriptor.END_REDUCE);
  }

  public int piece(int i) {
    return ids.getInt(i * BlockIdDescriptor.BYTES + BlockIdDescriptor.PIECE);
  }

  /** Returns the block's name as Spark writes it. */
  public String name(int i) {
    String first = "shuffle_" + shuffle(i) + "_" + map(i) + "_" + start(i);
    return end(i) == start(i) + 1 ? first : first + "_" + end(i);
  }

  /** Returns the ids in the calling thread's direct buffer, which the next call overwrites. */
  ByteBuffer direct() {
    int bytes = count * BlockIdDescriptor.BYTES;
    ByteBuffer direct = DIRECT.get();
    if (direct == null || direct.capacity() < bytes) {
      direct = littleEndian(ByteBuffer.allocateDirect(Math.max(bytes, 8 << 10)));
      DIRECT.set(direct);
    }
    direct.clear();
    direct.put(ids.array(), 0, bytes);
    return direct;
  }
}
