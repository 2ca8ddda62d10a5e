package io.faro.rows;

import io.faro.SliceSink;
import java.nio.ByteBuffer;
import java.util.Arrays;

/** The addresses of an input's parts in native memory. Reusable; for one thread at a time. */
public final class MemorySlices implements SliceSink {
  private long[] slices = new long[64];
  private int count;
  private int parts;
  /** The buffer whose address was last asked for: adjacent slices often lie in one slab. */
  private ByteBuffer root;
  private long rootAddress;

  public MemorySlices clear() {
    count = 0;
    parts = 0;
    // The buffer is not kept between inputs, because it may be the only one that keeps a slab mapped.
    root = null;
    return this;
  }

  @Override
  public void add(ByteBuffer direct, int offset, int bytes) {
    if (offset < 0 || bytes < 0 || offset > direct.capacity() - bytes) {
      throw new IllegalArgumentException(
          bytes + " bytes at " + offset + " of a buffer of " + direct.capacity());
    }
    if (direct != root) {
      rootAddress = RowsNative.address(direct);
      root = direct;
    }
    append(rootAddress + offset, bytes);
  }

  private void append(long address, int bytes) {
    if (2 * count == slices.length) {
      slices = Arrays.copyOf(slices, 2 * slices.length);
    }
    slices[2 * count] = address;
    slices[2 * count + 1] = (long) bytes << 1;
    count++;
  }

  /** Ends a part: it has the slices that were added since the last part, or no bytes if there are none. */
  @Override
  public void endPart() {
    if (count == 0 || (slices[2 * count - 1] & 1) == 1) {
      append(0, 0);
    }
    slices[2 * count - 1] |= 1;
    parts++;
  }

  public int parts() {
    return parts;
  }

  long[] slices() {
    return slices;
  }

  int count() {
    return count;
  }
}
