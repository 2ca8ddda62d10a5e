package io.faro;

import java.nio.ByteBuffer;

/** The part of the native arena that registered buffers use; {@link NativeBuffers} in production, a fake in tests. */
interface BufferSource {
  /** Leased memory. */
  final class Leased {
    final long handle;
    /** All of it, from position 0; keeps the memory mapped. */
    final ByteBuffer memory;

    Leased(long handle, ByteBuffer memory) {
      this.handle = handle;
      this.memory = memory;
    }
  }

  /** Waits up to {@code timeoutMillis}, then throws {@link EndpointException.Exhausted}. Any thread. */
  Leased acquire(int bytes, long timeoutMillis) throws FaroException;

  /** Returns it; exactly once per handle. Any thread. */
  void release(long handle);
}
