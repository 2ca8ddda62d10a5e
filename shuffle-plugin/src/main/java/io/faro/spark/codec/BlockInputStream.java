package io.faro.spark.codec;

import io.faro.spark.codec.BlockHeader.Method;
import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.zip.Checksum;
import net.jpountz.xxhash.XXHash32;
import net.jpountz.xxhash.XXHashFactory;

/**
 * The original bytes of lz4-java's block stream, or of several that were joined, which may have row blocks. Holds one
 * block: as it came, as it becomes, and what decoding it needs. Nothing of a block is given out before all of it was
 * checked.
 */
public final class BlockInputStream extends InputStream {
  private static final int SEED = 0x9747b28c;
  /** lz4-java keeps the lower 28 bits of a hash. */
  private static final int HASH_MASK = 0x0fff_ffff;
  private static final XXHash32 HASH = XXHashFactory.fastestInstance().hash32();
  /** Maximum that a wrong header makes this read, and allocate, ahead of the bytes that come. */
  private static final int FIRST_BYTES = 64 << 10;

  private final InputStream in;
  private final RowBoundary boundary = new RowBoundary();
  private final byte[] head = new byte[BlockHeader.BYTES];
  /** Made for the first row block. */
  private RowBlock rows;
  private Checksum crc;
  private byte[] body = new byte[0];
  private byte[] block = new byte[0];
  /** Range of {@link #block} that is still to be read. */
  private int at;
  private int end;
  /** Number of the next block. */
  private long number;
  private long offset;
  private State state = State.OPEN;
  private CorruptBlockException corruption;

  /** State of the stream. */
  private enum State {
    OPEN, FINISHED, CORRUPT, CLOSED
  }

  public BlockInputStream(InputStream in) {
    this.in = in;
  }

  @Override
  public int read() throws IOException {
    return fill() ? block[at++] & 0xff : -1;
  }

  @Override
  public int read(byte[] target, int from, int count) throws IOException {
    if ((from | count | target.length - from - count) < 0) {
      throw new IndexOutOfBoundsException(count + " bytes at " + from + " of " + target.length);
    }
    if (count == 0) {
      return 0;
    }
    if (!fill()) {
      return -1;
    }
    int now = Math.min(count, end - at);
    System.arraycopy(block, at, target, from, now);
    at += now;
    return now;
  }

  @Override
  public long skip(long count) throws IOException {
    if (count <= 0 || !fill()) {
      return 0;
    }
    int now = (int) Math.min(count, end - at);
    at += now;
    return now;
  }

  @Override
  public int available() {
    return end - at;
  }

  @Override
  public void close() throws IOException {
    state = State.CLOSED;
    at = 0;
    end = 0;
    body = null;
    block = null;
    rows = null;
    in.close();
  }

  /** Returns whether there are bytes to read; if need be decodes the next block. */
  private boolean fill() throws IOException {
    while (at == end) {
      switch (state) {
        case FINISHED:
          return false;
        case CORRUPT:
          throw corruption;
        case CLOSED:
          throw new IOException("Stream is closed");
        default:
          next();
      }
    }
    return true;
  }

  private void next() throws IOException {
    int token = -1;
    try {
      int got = readUpTo(head, 0, head.length);
      if (got == 0) {
        state = State.FINISHED;
        return;
      }
      if (got < head.length) {
        throw new BlockFault("the stream ends after " + got + " bytes of its header");
      }
      token = BlockHeader.token(head);
      decode(BlockHeader.parse(head));
    } catch (BlockFault e) {
      at = 0;
      end = 0;
      corruption = new CorruptBlockException(number, offset, token, e);
      state = State.CORRUPT;
      throw corruption;
    }
  }

  private void decode(BlockHeader header) throws IOException, BlockFault {
    readBody(header.body);
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
    at = 0;
    end = header.original;
    number++;
    offset += BlockHeader.BYTES + header.body;
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

  private void readBody(int bytes) throws IOException, BlockFault {
    int got = 0;
    while (got < bytes) {
      int max = Math.min(bytes, Math.max(FIRST_BYTES, 2 * got));
      if (body.length < max) {
        body = Arrays.copyOf(body, max);
      }
      int now = readUpTo(body, got, Math.min(bytes, body.length) - got);
      got += now;
      if (got < Math.min(bytes, body.length)) {
        throw new BlockFault("the stream ends after " + got + " of " + bytes + " bytes");
      }
    }
  }

  /** Fewer bytes only where the stream ends. */
  private int readUpTo(byte[] to, int from, int count) throws IOException {
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
