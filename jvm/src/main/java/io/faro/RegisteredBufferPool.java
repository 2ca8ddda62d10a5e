package io.faro;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Memory that an RDMA device may reach without a copy, for as long as it is held. Thread-safe.
 *
 * <p>Registering memory with a device costs microseconds to milliseconds, so Faro does it for large slabs, rarely, and
 * hands out parts of them: acquiring one costs well under a microsecond. All of it counts against the endpoint's
 * memory limit and is shared with the fetches of the endpoint: hold buffers no longer than needed. Where there is no
 * RDMA device the memory is ordinary memory, and everything else is the same.
 *
 * <pre>{@code
 * try (RegisteredBuffer buffer = endpoint.buffers().acquire(64 << 10, 5, TimeUnit.SECONDS)) {
 *   buffer.byteBuffer().putLong(0, 42);
 * }
 * }</pre>
 */
public final class RegisteredBufferPool implements AutoCloseable {
  /** Largest buffer, in bytes. */
  public static final int MAX_BYTES = 256 << 10;

  /** How long a thread waits in native code before it looks whether the pool was closed. */
  private static final long SLICE_MILLIS = 250;

  private final BufferSource source;
  private final AtomicInteger outstanding = new AtomicInteger();
  private volatile boolean closed;

  RegisteredBufferPool(BufferSource source) {
    this.source = source;
  }

  /**
   * A buffer of at least {@code bytes} bytes (the next of 4, 16, 64 and 256 KiB), with whatever bytes its last user
   * left, and one reference. Does not wait.
   *
   * @param bytes 1 to {@link #MAX_BYTES}; anything else is an {@link IllegalArgumentException}
   * @throws EndpointException.Exhausted when all memory that may be had for this is taken
   * @throws EndpointException.Closed when the pool or its endpoint was closed
   */
  public RegisteredBuffer acquire(int bytes) throws FaroException {
    return acquire(bytes, 0, TimeUnit.MILLISECONDS);
  }

  /**
   * The same, but waits up to that long for others to release memory.
   *
   * @param timeout 0 or less: does not wait
   */
  public RegisteredBuffer acquire(int bytes, long timeout, TimeUnit unit) throws FaroException {
    if (bytes <= 0 || bytes > MAX_BYTES) {
      throw new IllegalArgumentException(
          "a buffer of " + bytes + " bytes is not possible, 1 to " + MAX_BYTES + " bytes are");
    }
    long start = System.nanoTime();
    long nanos = Math.max(0, unit.toNanos(timeout));
    while (true) {
      if (closed) {
        throw new EndpointException.Closed("the pool of registered buffers is closed");
      }
      long left = nanos - (System.nanoTime() - start);
      // Rounded up, so that a wait does not end before its time.
      long slice = Math.min(SLICE_MILLIS, TimeUnit.NANOSECONDS.toMillis(Math.max(0, left) + 999_999));
      try {
        BufferSource.Leased leased = source.acquire(bytes, slice);
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

  /** Buffers that were acquired and not yet released. */
  public int outstanding() {
    return outstanding.get();
  }

  /**
   * Gives out no more buffers; a thread that waits for one gets {@link EndpointException.Closed} within 250 ms. Buffers
   * that are held stay good until they are released. Idempotent.
   */
  @Override
  public void close() {
    closed = true;
  }
}
