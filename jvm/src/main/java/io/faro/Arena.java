package io.faro;

import java.nio.ByteBuffer;

/** The part of the native arena that batches use; {@link Slabs} in production, a fake in tests. */
interface Arena {
  /** The root buffer over a slab; all of it, position 0. Callers make their own views. Completions thread only. */
  ByteBuffer slab(int index) throws FaroException;

  /** Returns a batch's memory; exactly once per handle. Any thread. */
  void releaseBatch(long handle);
}
