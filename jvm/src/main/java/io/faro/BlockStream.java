package io.faro;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;

/**
 * Reads a block from the arena. A bulk read copies each slice once, and there is no other copy.
 *
 * <p>A release during a read is detected, not prevented: the count is checked before the copy and, behind a fence,
 * after it. A read that returns has the block's own bytes; otherwise it throws. This costs two loads for each bulk
 * read. A reference would cost two atomic updates, and would leak the block of a stream that is not closed (Spark
 * closes the block, but not always the stream).
 */
final class BlockStream extends InputStream {
  private final ArenaBlock block;
  private final ArenaBatch batch;
  /** End of the block in the batch's stream of slices. */
  private final long end;
  /** Position of the next byte in the batch's stream of slices. */
  private long position;
  /** The rest of the current slice that belongs to the block; null before the first slice and after the last. */
  private ByteBuffer view;
  private int slice = -1;
  private boolean closed;

  BlockStream(ArenaBlock block, ArenaBatch batch, int index) {
    this.block = block;
    this.batch = batch;
    this.position = batch.start(index);
    this.end = position + batch.length(index);
  }

  @Override
  public int read() throws IOException {
    if (!ready()) {
      return -1;
    }
    int value = view.get() & 0xff;
    position++;
    block.checkStillHeld();
    return value;
  }

  @Override
  public int read(byte[] into, int offset, int length) throws IOException {
    if ((offset | length) < 0 || length > into.length - offset) {
      throw new IndexOutOfBoundsException(offset + " + " + length + " of " + into.length);
    }
    if (length == 0) {
      open();
      return 0;
    }
    if (!ready()) {
      return -1;
    }
    int done = 0;
    do {
      int part = Math.min(length - done, view.remaining());
      view.get(into, offset + done, part);
      position += part;
      done += part;
    } while (done < length && ready());
    block.checkStillHeld();
    return done;
  }

  @Override
  public long skip(long bytes) throws IOException {
    open();
    long skipped = Math.max(0, Math.min(bytes, end - position));
    position += skipped;
    if (view != null) {
      if (skipped <= view.remaining()) {
        view.position(view.position() + (int) skipped);
      } else {
        view = null;
        slice = -1;
      }
    }
    return skipped;
  }

  @Override
  public int available() throws IOException {
    open();
    return (int) Math.min(Integer.MAX_VALUE, end - position);
  }

  @Override
  public void close() {
    closed = true;
    view = null;
  }

  private void open() throws IOException {
    if (closed) {
      throw new IOException("the stream is closed");
    }
    block.checkHeld();
  }

  /** Makes {@link #view} hold the next byte. Returns false at the end. */
  private boolean ready() throws IOException {
    open();
    if (position == end) {
      view = null;
      return false;
    }
    if (view == null || !view.hasRemaining()) {
      slice = slice < 0 ? batch.sliceAt(position) : slice + 1;
      view = batch.view(slice, position, end);
      while (!view.hasRemaining()) {
        view = batch.view(++slice, position, end);
      }
    }
    return true;
  }
}
