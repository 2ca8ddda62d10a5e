package io.faro;

import java.nio.ByteBuffer;

/** The part of the native arena that batches use; {@link Slabs} in production, a fake in tests. */
interface Arena {
  /** Returns the root buffer over a slab, at position 0. Callers make their own views. Called by one thread. */
  ByteBuffer slab(int index) throws FaroException;

  /**
   * Returns {@code count} slices of a batch to the arena, from position {@code first} on; each slice exactly once. Any
   * thread may call it.
   */
  void release(long batch, int first, int count);
}
