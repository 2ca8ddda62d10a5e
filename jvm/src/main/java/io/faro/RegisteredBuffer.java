package io.faro;

import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;

/**
 * Registered memory with a reference count: it starts with one reference, and the last release returns it to its
 * {@link RegisteredBufferPool}. The count is thread-safe; the bytes are not, like an array's.
 *
 * <p>After the last release every method except {@link #toString} and {@link #capacity} throws an
 * {@link IllegalStateException} that names the buffer. So does one release too many; it does not release the memory of
 * another buffer.
 *
 * <p>{@link #get} and {@link #put} hold a reference while they copy, so another thread cannot release the buffer
 * meanwhile. A {@link ByteBuffer} of {@link #byteBuffer} is not checked: it is valid until the last release. Used after
 * that it never faults, because the memory stays mapped while a view of it is reachable, but it may read and overwrite
 * the bytes of another buffer.
 */
public final class RegisteredBuffer implements AutoCloseable {
  private static final AtomicIntegerFieldUpdater<RegisteredBuffer> REFERENCES =
      AtomicIntegerFieldUpdater.newUpdater(RegisteredBuffer.class, "references");

  private final RegisteredBufferPool pool;
  private final long handle;
  private final ByteBuffer memory;
  private volatile int references = 1;

  RegisteredBuffer(RegisteredBufferPool pool, BufferSource.LeasedMemory leased) {
    this.pool = pool;
    this.handle = leased.handle;
    this.memory = leased.memory;
  }

  /** Returns the size in bytes, which is at least the requested one. */
  public int capacity() {
    return memory.capacity();
  }

  /** Adds a reference. */
  public RegisteredBuffer retain() {
    change(1);
    return this;
  }

  /** Removes a reference; the last one returns the memory. */
  public void release() {
    if (change(-1) == 0) {
      pool.release(handle);
    }
  }

  /** Does the same as {@link #release}, for {@code try}. */
  @Override
  public void close() {
    release();
  }

  /**
   * Returns a new view of all bytes, at position 0 and big-endian like every new {@link ByteBuffer}. It is not checked:
   * it is valid until the last release.
   */
  public ByteBuffer byteBuffer() {
    if (references <= 0) {
      throw gone();
    }
    return memory.duplicate();
  }

  /** Copies bytes of the buffer, from {@code index} on, to an array. */
  public void get(int index, byte[] to, int offset, int length) {
    check(index, to, offset, length);
    retain();
    try {
      ByteBuffer view = memory.duplicate();
      view.position(index);
      view.get(to, offset, length);
    } finally {
      release();
    }
  }

  /** Copies bytes of an array into the buffer, from {@code index} on. */
  public void put(int index, byte[] from, int offset, int length) {
    check(index, from, offset, length);
    retain();
    try {
      ByteBuffer view = memory.duplicate();
      view.position(index);
      view.put(from, offset, length);
    } finally {
      release();
    }
  }

  private void check(int index, byte[] array, int offset, int length) {
    if (index < 0 || length < 0 || index > capacity() - length) {
      throw new IndexOutOfBoundsException(length + " bytes at " + index + " of " + this);
    }
    if (offset < 0 || offset > array.length - length) {
      throw new IndexOutOfBoundsException(length + " bytes at " + offset + " of an array of " + array.length);
    }
  }

  private int change(int by) {
    int now;
    do {
      now = references;
      if (now <= 0) {
        throw gone();
      }
      if (now + by < 0) {
        throw new IllegalStateException(this + " has too many references");
      }
    } while (!REFERENCES.compareAndSet(this, now, now + by));
    return now + by;
  }

  private IllegalStateException gone() {
    return new IllegalStateException(this + " was released already");
  }

  @Override
  public String toString() {
    return "registered buffer 0x" + Long.toHexString(handle) + " (" + capacity() + " bytes, " + references
        + " references)";
  }
}
