package io.faro;

import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;

/**
 * A piece of registered memory, counted: born with one reference, returned to its {@link RegisteredBufferPool} with the
 * last. References are thread-safe; the bytes are as thread-safe as an array's.
 *
 * <p>After the last release every method but {@link #toString} and {@link #capacity} throws an
 * {@link IllegalStateException} that names the buffer; a release too many does so too, and takes nobody else's memory
 * away.
 *
 * <p>{@link #get} and {@link #put} hold a reference while they copy, so that no release, by whatever thread, can get
 * between: what they read and write is this buffer's. A {@link ByteBuffer} of {@link #byteBuffer} cannot be checked. It
 * is good until the last release. Used later it never faults, because memory stays mapped as long as a view of it can
 * be reached, but what it shows by then may be another's, and what it writes would damage another's bytes.
 */
public final class RegisteredBuffer implements AutoCloseable {
  private static final AtomicIntegerFieldUpdater<RegisteredBuffer> REFERENCES =
      AtomicIntegerFieldUpdater.newUpdater(RegisteredBuffer.class, "references");

  private final RegisteredBufferPool pool;
  private final long handle;
  private final ByteBuffer memory;
  private volatile int references = 1;

  RegisteredBuffer(RegisteredBufferPool pool, BufferSource.Leased leased) {
    this.pool = pool;
    this.handle = leased.handle;
    this.memory = leased.memory;
  }

  /** Bytes; at least those asked for. */
  public int capacity() {
    return memory.capacity();
  }

  /** One more reference. */
  public RegisteredBuffer retain() {
    change(1);
    return this;
  }

  /** One reference less; with the last one the memory goes back. */
  public void release() {
    if (change(-1) == 0) {
      pool.release(handle);
    }
  }

  /** The same as {@link #release}, for {@code try}. */
  @Override
  public void close() {
    release();
  }

  /** A new view of all bytes, position 0, big-endian as every new {@link ByteBuffer}; see the class's comment. */
  public ByteBuffer byteBuffer() {
    if (references <= 0) {
      throw gone();
    }
    return memory.duplicate();
  }

  /** Copies bytes from {@code index} on out of the buffer. */
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

  /** Copies bytes into the buffer, from {@code index} on. */
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
