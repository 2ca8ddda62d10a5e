package io.faro;

import java.nio.ByteBuffer;

/** What registered buffers need of the native arena; {@link NativeBuffers} is the real one. */
interface BufferSource {
  /** Memory that was leased. */
  final class Leased {
    final long handle;
    /** All of it, from position 0; keeps the memory mapped. */
    final ByteBuffer memory;

    Leased(long handle, ByteBuffer memory) {
      this.handle = handle;
      this.memory = memory;
    }
  }

  /** Waits up to that long; {@link EndpointException.Exhausted} when there is none. Any thread. */
  Leased acquire(int bytes, long timeoutMillis) throws FaroException;

  /** Returns it; exactly once per handle. Any thread. */
  void release(long handle);
}
