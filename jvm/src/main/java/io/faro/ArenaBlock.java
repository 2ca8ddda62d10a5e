package io.faro;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;

/**
 * A block in the arena.
 *
 * <p>A block costs this one object of three fields. Its count is its own: one release too many throws here, with the
 * block's name, and does not release another block.
 */
final class ArenaBlock implements BlockBytes {
  private static final AtomicIntegerFieldUpdater<ArenaBlock> REFERENCES =
      AtomicIntegerFieldUpdater.newUpdater(ArenaBlock.class, "references");

  private final ArenaBatch batch;
  private final int index;
  private volatile int references = 1;

  ArenaBlock(ArenaBatch batch, int index) {
    this.batch = batch;
    this.index = index;
  }

  @Override
  public long length() {
    return batch.length(index);
  }

  @Override
  public BlockBytes retain() {
    change(1);
    return this;
  }

  @Override
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

  /** Throws {@link IllegalStateException} if the bytes were freed. */
  void checkHeld() {
    if (references <= 0) {
      throw gone();
    }
  }

  /**
   * Does the same as {@link #checkHeld} after a copy, behind a full fence, so that the copy's loads cannot be delayed
   * past the check. If it does not throw, the bytes were this block's during the whole copy.
   */
  void checkStillHeld() {
    if (REFERENCES.getAndAdd(this, 0) <= 0) {
      throw gone();
    }
  }

  private IllegalStateException gone() {
    return new IllegalStateException(batch.nameOf(index) + " was released already");
  }

  @Override
  public InputStream inputStream() {
    checkHeld();
    return new BlockStream(this, batch, index);
  }

  @Override
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

  @Override
  public void addTo(SliceSink slices) {
    checkHeld();
    long end = batch.start(index) + length();
    for (long at = batch.start(index); at < end; ) {
      at += batch.addSlice(slices, batch.sliceAt(at), at, end);
    }
    slices.endPart();
  }

  @Override
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
