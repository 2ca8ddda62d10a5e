package io.faro;

import java.nio.ByteBuffer;

/** The part of the native arena that batches use; {@link Slabs} in production, a fake in tests. */
interface Arena {
  /** The root buffer over a slab; all of it, position 0. Callers make their own views. One thread. */
  ByteBuffer slab(int index) throws FaroException;

  /** Returns {@code count} slices of a batch from position {@code first} on; each slice exactly once. Any thread. */
  void release(long batch, int first, int count);
}
