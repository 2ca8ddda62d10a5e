package io.faro.spark.codec;

import io.faro.spark.codec.BlockHeader.Method;
import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.zip.Checksum;
import net.jpountz.xxhash.XXHash32;
import net.jpountz.xxhash.XXHashFactory;

/**
 * Decodes the blocks of a compressed stream, one after the other. Holds one block: as it came, as it becomes, and what
 * decoding it needs. Nothing of a block is given out before all of it was checked.
 */
final class BlockDecoder {
  private static final int SEED = 0x9747b28c;
  /** lz4-java keeps the lower 28 bits of a hash. */
  private static final int HASH_MASK = 0x0fff_ffff;
  private static final XXHash32 HASH = XXHashFactory.fastestInstance().hash32();
  /** Maximum that a wrong header can make this allocate and read ahead of the bytes that come. */
  private static final int FIRST_BYTES = 64 << 10;

  private final RowBoundary boundary = new RowBoundary();
  private final byte[] head = new byte[BlockHeader.BYTES];
  /** Made for the first row block. */
  private RowBlock rows;
  private Checksum crc;
  private byte[] body = new byte[0];
  private byte[] block = new byte[0];
  /** Number of the next block, for error messages. */
  private long number;

  /**
   * Decodes the next block; returns how many bytes of {@link #block} are its original bytes, or -1 where the stream
   * ends. {@code offset}: where in the stream the block begins.
   */
  int next(InputStream in, long offset) throws IOException {
    int token = -1;
    try {
      int got = readUpTo(in, head, 0, head.length);
      if (got == 0) {
        return -1;
      }
      if (got < head.length) {
        throw new BlockFault("the stream ends after " + got + " bytes of its header");
      }
      token = BlockHeader.token(head);
      BlockHeader header = BlockHeader.parse(head);
      decode(header, in);
      number++;
      return header.original;
    } catch (BlockFault e) {
      throw new CorruptBlockException(number, offset, token, e);
    }
  }

  byte[] block() {
    return block;
  }

  /** Bytes that the last block had in the stream. */
  int lastBytes() {
    return BlockHeader.BYTES + BlockHeader.bodyBytes(head);
  }

  /** Original bytes that stand before the next block and are not a block's. */
  void pass(byte[] bytes, int count) {
    boundary.pass(bytes, count);
  }

  private void decode(BlockHeader header, InputStream in) throws IOException, BlockFault {
    readBody(in, header.body);
    if (header.method.isRows()) {
      checkRows(header);
    }
    if (block.length < header.original) {
      block = new byte[header.original];
    }
    switch (header.method) {
      case RAW:
        System.arraycopy(body, 0, block, 0, header.original);
        break;
      case LZ4:
        if (header.original > 0) {
          Decompressors.lz4(body, 0, header.body, block, header.original);
        }
        break;
      default:
        if (rows == null) {
          rows = new RowBlock();
        }
        rows.decode(body, header.body, header.original, header.method == Method.ROWS_ZSTD, block);
    }
    if (!header.method.isRows() && header.original > 0) {
      checkSum(HASH.hash(block, 0, header.original, SEED) & HASH_MASK, header.checksum);
      boundary.pass(block, header.original);
    }
  }

  /** Before anything of the body is used. */
  private void checkRows(BlockHeader header) throws BlockFault {
    if (crc == null) {
      crc = Crc32c.create();
    }
    crc.reset();
    crc.update(head, BlockHeader.CHECKED_FROM, BlockHeader.CHECKED_BYTES);
    crc.update(body, 0, header.body);
    checkSum((int) crc.getValue(), header.checksum);
    if (!boundary.isBetweenRows()) {
      throw new BlockFault("it begins inside a row");
    }
  }

  private static void checkSum(int found, int expected) throws BlockFault {
    if (found != expected) {
      throw new BlockFault("its checksum is " + Integer.toHexString(found) + "; its header says "
          + Integer.toHexString(expected));
    }
  }

  private void readBody(InputStream in, int bytes) throws IOException, BlockFault {
    int got = 0;
    while (got < bytes) {
      int max = Math.min(bytes, Math.max(FIRST_BYTES, 2 * got));
      if (body.length < max) {
        body = Arrays.copyOf(body, max);
      }
      int now = readUpTo(in, body, got, Math.min(bytes, body.length) - got);
      got += now;
      if (got < Math.min(bytes, body.length)) {
        throw new BlockFault("the stream ends after " + got + " of " + bytes + " bytes");
      }
    }
  }

  /** Fewer bytes only where the stream ends. */
  private static int readUpTo(InputStream in, byte[] to, int from, int count) throws IOException {
    int got = 0;
    while (got < count) {
      int now = in.read(to, from + got, count - got);
      if (now < 0) {
        break;
      }
      got += now;
    }
    return got;
  }
}
