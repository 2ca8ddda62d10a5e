package io.faro;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** An arena without native code. The byte of each slab at {@code offset} is {@link #byteAt}. */
final class FakeArena implements Arena {
  static final int SLAB_BYTES = 1 << 16;

  private final ByteBuffer[] slabs = new ByteBuffer[4];
  /** The batch handles of the slices that were released, in order. */
  final List<Long> released = new CopyOnWriteArrayList<>();
  /** The slices that were released, as {@code first+count}. */
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

  /** Returns the bytes of a slice. */
  static byte[] bytes(int slab, int offset, int length) {
    byte[] bytes = new byte[length];
    for (int i = 0; i < length; i++) {
      bytes[i] = byteAt(slab, offset + i);
    }
    return bytes;
  }

  /** Overwrites a byte as another owner would; a reader of the block must never see it. */
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
