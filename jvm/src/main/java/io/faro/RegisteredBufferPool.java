package io.faro;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Memory that an RDMA device can access without a copy until it is released. Thread-safe.
 *
 * <p>Registering memory with a device takes microseconds to milliseconds. So Faro registers large slabs, rarely, and
 * leases parts of them, which takes well under a microsecond. The memory counts against the endpoint's memory limit and
 * is shared with the endpoint's fetches: hold buffers no longer than needed. Without an RDMA device it is ordinary
 * memory, and everything else is the same.
 *
 * <pre>{@code
 * try (RegisteredBuffer buffer = endpoint.buffers().acquire(64 << 10, 5, TimeUnit.SECONDS)) {
 *   buffer.byteBuffer().putLong(0, 42);
 * }
 * }</pre>
 */
public final class RegisteredBufferPool implements AutoCloseable {
  /** Maximum size of a buffer, in bytes. */
  public static final int MAX_BYTES = 256 << 10;

  /** Time for which a thread waits in native code before it checks whether the pool was closed. */
  private static final long SLICE_MILLIS = 250;

  private final BufferSource source;
  private final AtomicInteger outstanding = new AtomicInteger();
  private volatile boolean closed;

  RegisteredBufferPool(BufferSource source) {
    this.source = source;
  }

  /**
   * Returns a buffer of at least {@code bytes} bytes (the next of 2, 4, 16, 64 and 256 KiB) with undefined content and
   * one reference. Does not wait.
   *
   * @param bytes 1 to {@link #MAX_BYTES}; anything else is an {@link IllegalArgumentException}
   * @throws EndpointException.Exhausted if the memory for buffers is used up
   * @throws EndpointException.Closed if the pool or its endpoint was closed
   */
  public RegisteredBuffer acquire(int bytes) throws FaroException {
    return acquire(bytes, 0, TimeUnit.MILLISECONDS);
  }

  /**
   * Returns a buffer like {@link #acquire(int)}, but waits up to {@code timeout} for released memory.
   *
   * @param timeout 0 or less does not wait
   */
  public RegisteredBuffer acquire(int bytes, long timeout, TimeUnit unit) throws FaroException {
    if (bytes <= 0 || bytes > MAX_BYTES) {
      throw new IllegalArgumentException(
          "a buffer of " + bytes + " bytes, allowed: 1 to " + MAX_BYTES + " bytes");
    }
    long start = System.nanoTime();
    long nanos = Math.max(0, unit.toNanos(timeout));
    while (true) {
      if (closed) {
        throw new EndpointException.Closed("the pool of registered buffers is closed");
      }
      long left = nanos - (System.nanoTime() - start);
      // The time is rounded up, so that a wait does not end early.
      long slice = Math.min(SLICE_MILLIS, TimeUnit.NANOSECONDS.toMillis(Math.max(0, left) + 999_999));
      try {
        BufferSource.LeasedMemory leased = source.acquire(bytes, slice);
        outstanding.incrementAndGet();
        return new RegisteredBuffer(this, leased);
      } catch (EndpointException.Exhausted e) {
        if (nanos - (System.nanoTime() - start) <= 0) {
          throw e;
        }
      }
    }
  }

  void release(long handle) {
    source.release(handle);
    outstanding.decrementAndGet();
  }

  /** Returns the number of buffers that were acquired and not yet released. */
  public int outstanding() {
    return outstanding.get();
  }

  /**
   * Closes the pool: a thread that waits in {@link #acquire} gets {@link EndpointException.Closed} within 250 ms.
   * Buffers that were acquired stay valid until they are released. Idempotent.
   */
  @Override
  public void close() {
    closed = true;
  }
}
