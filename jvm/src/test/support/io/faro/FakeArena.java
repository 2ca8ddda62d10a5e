package io.faro;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** An arena without native code: each slab's byte at {@code offset} is {@link #byteAt}. */
final class FakeArena implements Arena {
  static final int SLAB_BYTES = 1 << 16;

  private final ByteBuffer[] slabs = new ByteBuffer[4];
  /** Handles of which slices were released, in order. */
  final List<Long> released = new CopyOnWriteArrayList<>();
  /** The slices, as {@code first+count}. */
  final List<String> slices = new CopyOnWriteArrayList<>();

  FakeArena() {
    for (int slab = 0; slab < slabs.length; slab++) {
      slabs[slab] = ByteBuffer.allocateDirect(SLAB_BYTES);
      for (int offset = 0; offset < SLAB_BYTES; offset++) {
        slabs[slab].put(offset, byteAt(slab, offset));
      }
    }
  }

  static byte byteAt(int slab, int offset) {
    return (byte) (offset * 31 + (offset >> 8) + slab * 7);
  }

  /** The bytes of a slice. */
  static byte[] bytes(int slab, int offset, int length) {
    byte[] bytes = new byte[length];
    for (int i = 0; i < length; i++) {
      bytes[i] = byteAt(slab, offset + i);
    }
    return bytes;
  }

  /** Puts somebody else's byte there, which a reader of the block must never see. */
  void overwrite(int slab, int offset) {
    slabs[slab].put(offset, (byte) ~byteAt(slab, offset));
  }

  @Override
  public ByteBuffer slab(int index) throws FaroException {
    if (index >= slabs.length) {
      throw new EndpointException("no slab " + index);
    }
    return slabs[index];
  }

  @Override
  public void release(long batch, int first, int count) {
    released.add(batch);
    slices.add(first + "+" + count);
  }
}
