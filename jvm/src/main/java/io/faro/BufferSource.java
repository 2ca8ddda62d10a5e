package io.faro;

import java.nio.ByteBuffer;

/** The part of the native arena that registered buffers use; {@link NativeBuffers} in production, a fake in tests. */
interface BufferSource {
  /** Leased memory. */
  final class LeasedMemory {
    final long handle;
    /** All of the memory, from position 0; the buffer keeps it mapped. */
    final ByteBuffer memory;

    LeasedMemory(long handle, ByteBuffer memory) {
      this.handle = handle;
      this.memory = memory;
    }
  }

  /**
   * Leases memory. Waits for it up to {@code timeoutMillis}, then throws {@link EndpointException.Exhausted}. Any
   * thread may call it.
   */
  LeasedMemory acquire(int bytes, long timeoutMillis) throws FaroException;

  /** Returns leased memory; exactly once per handle. Any thread may call it. */
  void release(long handle);
}
