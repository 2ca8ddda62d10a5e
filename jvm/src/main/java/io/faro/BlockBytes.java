package io.faro;

import io.faro.rows.MemorySlices;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;

/**
 * The bytes of one block with a reference count: it starts with one reference, and the last release frees the bytes.
 * Thread-safe.
 *
 * <p>A block costs this one object of three fields. It has a count of its own: one release too many throws here, with
 * the block's name, and does not release another block.
 */
public final class BlockBytes {
  private static final AtomicIntegerFieldUpdater<BlockBytes> REFERENCES =
      AtomicIntegerFieldUpdater.newUpdater(BlockBytes.class, "references");

  private final BlockBatch batch;
  private final int index;
  private volatile int references = 1;

  BlockBytes(BlockBatch batch, int index) {
    this.batch = batch;
    this.index = index;
  }

  public long length() {
    return batch.length(index);
  }

  /** One more reference. Throws {@link IllegalStateException} when all are gone. */
  public BlockBytes retain() {
    change(1);
    return this;
  }

  /** One reference less; the last one frees the bytes. Throws {@link IllegalStateException} when all are gone. */
  public void release() {
    if (change(-1) == 0) {
      batch.releaseBlock(index);
    }
  }

  private int change(int by) {
    int now;
    do {
      now = references;
      if (now <= 0) {
        throw gone();
      }
    } while (!REFERENCES.compareAndSet(this, now, now + by));
    return now + by;
  }

  /** Throws {@link IllegalStateException} when the last reference is gone. */
  void checkHeld() {
    if (references <= 0) {
      throw gone();
    }
  }

  /**
   * Like {@link #checkHeld}, for after a copy: a full fence, so that the copy's loads cannot be delayed past the check.
   * When it passes, the bytes were this block's during the whole copy.
   */
  void checkStillHeld() {
    if (REFERENCES.getAndAdd(this, 0) <= 0) {
      throw gone();
    }
  }

  private IllegalStateException gone() {
    return new IllegalStateException(batch.nameOf(index) + " was released already");
  }

  /** Reads the bytes from their start. Holds no reference of its own: closing it releases nothing. */
  public InputStream inputStream() {
    checkHeld();
    return new BlockStream(this, batch, index);
  }

  /**
   * Returns a read-only buffer: a view if the block lies in one slice, else a copy. A view is valid until the last
   * release; after it, its content is undefined. A block of 2 GiB or more throws {@link UnsupportedOperationException};
   * read it by {@link #inputStream}.
   */
  public ByteBuffer nioByteBuffer() {
    checkHeld();
    long length = length();
    if (length > Integer.MAX_VALUE) {
      throw new UnsupportedOperationException(
          batch.nameOf(index) + " has " + length + " bytes, a ByteBuffer at most " + Integer.MAX_VALUE);
    }
    if (length == 0) {
      return ByteBuffer.allocate(0).asReadOnlyBuffer();
    }
    long start = batch.start(index);
    ByteBuffer view = batch.view(batch.sliceAt(start), start, start + length);
    if (view.remaining() == length) {
      return view.slice().asReadOnlyBuffer();
    }
    byte[] copy = new byte[(int) length];
    try (InputStream in = inputStream()) {
      int read = in.read(copy, 0, copy.length);
      if (read != copy.length) {
        throw new IllegalStateException(batch.nameOf(index) + " ended after " + read + " of " + length + " bytes");
      }
    } catch (IOException e) {
      throw new IllegalStateException(batch.nameOf(index), e);
    }
    return ByteBuffer.wrap(copy).asReadOnlyBuffer();
  }

  /** Appends where the bytes lie, as one part. They are there as long as the caller holds a reference. */
  public void addTo(MemorySlices slices) {
    checkHeld();
    long end = batch.start(index) + length();
    for (long at = batch.start(index); at < end; ) {
      at += batch.addSlice(slices, batch.sliceAt(at), at, end);
    }
    slices.endPart();
  }

  /** Copies the bytes into {@code target}, which has room for all of them. */
  public void copyTo(ByteBuffer target) {
    checkHeld();
    long end = batch.start(index) + length();
    for (long at = batch.start(index); at < end; ) {
      ByteBuffer view = batch.view(batch.sliceAt(at), at, end);
      at += view.remaining();
      target.put(view);
    }
    checkStillHeld();
  }

  @Override
  public String toString() {
    return batch.nameOf(index) + " (" + length() + " bytes, " + references + " references)";
  }
}
