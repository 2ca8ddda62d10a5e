package io.faro;

import java.nio.ByteBuffer;

/**
 * Layout of BlockId of native/wire (block.rs), little-endian, 24 bytes.
 *
 * <pre>
 *  0        8            12             16           20         24
 *  +--------+------------+--------------+------------+----------+
 *  | map_id | shuffle_id | start_reduce | end_reduce | piece    |
 *  | i64    | u32        | u32          | u32        | u32      |
 *  +--------+------------+--------------+------------+----------+
 * </pre>
 */
final class BlockIdDescriptor {
  static final int MAP_ID = 0;
  static final int SHUFFLE_ID = 8;
  static final int START_REDUCE = 12;
  static final int END_REDUCE = 16;
  static final int PIECE = 20;
  static final int BYTES = 24;

  private BlockIdDescriptor() {}

  /** Writes one id at {@code at}; {@code buffer} is little-endian. */
  static void put(ByteBuffer buffer, int at, int shuffleId, long mapId, int startReduce, int endReduce,
      int piece) {
    buffer.putLong(at + MAP_ID, mapId);
    buffer.putInt(at + SHUFFLE_ID, shuffleId);
    buffer.putInt(at + START_REDUCE, startReduce);
    buffer.putInt(at + END_REDUCE, endReduce);
    buffer.putInt(at + PIECE, piece);
  }
}
