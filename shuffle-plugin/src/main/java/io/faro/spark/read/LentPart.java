package io.faro.spark.read;

import io.faro.Endpoint;
import io.faro.rows.FilePart;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;
import org.apache.spark.network.buffer.ManagedBuffer;

/** A part in lent files, which is read as a stream. It holds nothing that would have to be released. */
final class LentPart extends ManagedBuffer {
  /** The open files of an endpoint, which may close them at any time. */
  interface Files {
    /** Finds a part; {@code null}: the files are not open, or do not have it. */
    Bytes find(int shuffle, long map, int start, int end);

    /** Those of {@code endpoint}. */
    static Files of(Endpoint endpoint) {
      return (shuffle, map, start, end) -> {
        FilePart part = FilePart.find(endpoint, shuffle, map, start, end);
        return part == null ? null : new Bytes(part.bytes(), part::read);
      };
    }
  }

  /** A part that was found in such files. */
  static final class Bytes {
    final long count;
    final Read read;

    Bytes(long count, Read read) {
      this.count = count;
      this.read = read;
    }
  }

  /** Reads bytes of a part; see {@link FilePart#read}. */
  interface Read {
    /** False: the files are not open any more, or cannot be read. */
    boolean at(long position, byte[] to, int offset, int length);
  }

  private static final int CHUNK_BYTES = 64 << 10;

  private final Bytes part;
  private final Predicate<BooleanSupplier> whileBorrowing;

  /**
   * {@code whileBorrowing} returns whether a read has succeeded, before which it borrows files again that the endpoint
   * has closed meanwhile.
   */
  LentPart(Bytes part, Predicate<BooleanSupplier> whileBorrowing) {
    this.part = part;
    this.whileBorrowing = whileBorrowing;
  }

  @Override
  public long size() {
    return part.count;
  }

  @Override
  public InputStream createInputStream() {
    return new Stream();
  }

  private void read(long position, byte[] to, int length) throws IOException {
    if (!whileBorrowing.test(() -> part.read.at(position, to, 0, length))) {
      throw new IOException("the lent file is not there any more, or cannot be read at " + position + " of the part's "
          + part.count + " bytes");
    }
  }

  @Override
  public ByteBuffer nioByteBuffer() throws IOException {
    byte[] all = new byte[Math.toIntExact(part.count)];
    read(0, all, all.length);
    return ByteBuffer.wrap(all);
  }

  @Override
  public ManagedBuffer retain() {
    return this;
  }

  @Override
  public ManagedBuffer release() {
    return this;
  }

  /** It is not sent to anyone. */
  @Override
  public Object convertToNetty() {
    throw new UnsupportedOperationException("a lent part is read here");
  }

  /** Abstract in ManagedBuffer from Spark 4.0 on, absent before: hence no annotation. */
  public Object convertToNettyForSsl() {
    return convertToNetty();
  }

  private final class Stream extends ArrayStream {
    private final byte[] chunk = new byte[(int) Math.min(CHUNK_BYTES, part.count)];
    /** Bytes of the part that are or were in the chunk, and those of the chunk that were not handed out. */
    private long position;
    private int left;
    private int filled;

    @Override
    public int read(byte[] to, int offset, int length) throws IOException {
      if (length == 0) {
        return 0;
      }
      if (left == 0 && !fill()) {
        return -1;
      }
      int bytes = Math.min(length, left);
      System.arraycopy(chunk, filled - left, to, offset, bytes);
      left -= bytes;
      return bytes;
    }

    private boolean fill() throws IOException {
      filled = (int) Math.min(chunk.length, part.count - position);
      if (filled == 0) {
        return false;
      }
      LentPart.this.read(position, chunk, filled);
      position += filled;
      left = filled;
      return true;
    }

    @Override
    public int available() {
      return (int) Math.min(Integer.MAX_VALUE, left + part.count - position);
    }
  }
}
