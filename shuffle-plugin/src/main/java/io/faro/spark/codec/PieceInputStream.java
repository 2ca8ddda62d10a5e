package io.faro.spark.codec;

import java.io.IOException;
import java.io.InputStream;

/** A stream that comes in pieces, each of which is made when the one before was read. A corrupt one stays corrupt. */
abstract class PieceInputStream extends InputStream {
  private final InputStream in;
  private byte[] piece = new byte[0];
  /** The next byte of {@link #piece} to read; bytes up to {@link #end} are still unread. */
  private int at;
  private int end;
  private State state = State.OPEN;
  private CorruptBlockException corruption;

  /** FINISHED and CORRUPT are final: each further read ends in the same way. */
  private enum State {
    OPEN, FINISHED, CORRUPT, CLOSED
  }

  /** {@code in}: closed with this one. */
  PieceInputStream(InputStream in) {
    this.in = in;
  }

  /** Makes the next piece: how many bytes of {@link #made} it has, which may be none; -1 at the end. */
  abstract int next() throws IOException;

  /** The array that the last piece is at the start of. */
  abstract byte[] made();

  /** Frees what the pieces needed, but not the stream that they came from. */
  abstract void free() throws IOException;

  @Override
  public int read() throws IOException {
    return fill() ? piece[at++] & 0xff : -1;
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
    System.arraycopy(piece, at, target, from, now);
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
    if (state == State.CLOSED) {
      return;
    }
    state = State.CLOSED;
    at = 0;
    end = 0;
    piece = null;
    try {
      free();
    } finally {
      in.close();
    }
  }

  /** Makes the next piece if the last one was read; returns whether there are bytes to read. */
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
          make();
      }
    }
    return true;
  }

  private void make() throws IOException {
    try {
      int bytes = next();
      if (bytes < 0) {
        state = State.FINISHED;
        return;
      }
      piece = made();
      at = 0;
      end = bytes;
    } catch (CorruptBlockException e) {
      corruption = e;
      state = State.CORRUPT;
      throw e;
    }
  }
}
