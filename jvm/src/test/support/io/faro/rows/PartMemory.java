package io.faro.rows;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** Parts in direct buffers. A reader has only their addresses, so this object must live as long as the reader. */
final class PartMemory {
  private static final int BEFORE = 3;
  private static final int BEHIND = 2;

  private final List<ByteBuffer> buffers = new ArrayList<>();

  /** Returns slices with each part in one slice. */
  MemorySlices parts(byte[]... parts) {
    MemorySlices slices = new MemorySlices();
    for (byte[] part : parts) {
      cut(slices, part, part.length);
    }
    return slices;
  }

  /** Appends a part in slices whose lengths repeat {@code lengths}, each in its own buffer. */
  void cut(MemorySlices slices, byte[] part, int... lengths) {
    add(slices, part, lengths);
    slices.endPart();
  }

  /** Appends bytes without ending the part. */
  void add(MemorySlices slices, byte[] bytes, int... lengths) {
    for (int at = 0, i = 0; at < bytes.length; i++) {
      int length = Math.min(lengths[i % lengths.length], bytes.length - at);
      // The slice starts at an odd address.
      ByteBuffer buffer = ByteBuffer.allocateDirect(BEFORE + length + BEHIND);
      buffer.position(BEFORE);
      buffer.put(bytes, at, length);
      buffers.add(buffer);
      slices.add(buffer, BEFORE, length);
      at += length;
    }
  }

  /** Returns a copy with one bit flipped. */
  static byte[] flipped(byte[] part, int at) {
    byte[] bytes = part.clone();
    bytes[at] ^= 0x40;
    return bytes;
  }
}
