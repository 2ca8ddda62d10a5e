package io.faro.rows;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.util.ArrayList;
import java.util.List;

/** Reads native memory through the kernel, so that an unmapped address fails the test and does not end the JVM. */
public final class NativeMemory {
  private NativeMemory() {}

  static byte[] read(long address, int bytes) throws IOException {
    byte[] read = new byte[bytes];
    try (RandomAccessFile memory = new RandomAccessFile("/proc/self/mem", "r")) {
      memory.seek(address);
      memory.readFully(read);
    }
    return read;
  }

  /** Returns the bytes of each complete part. */
  public static List<byte[]> parts(MemorySlices slices) throws IOException {
    List<byte[]> parts = new ArrayList<>();
    ByteArrayOutputStream part = new ByteArrayOutputStream();
    for (int i = 0; i < slices.count(); i++) {
      long coded = slices.slices()[2 * i + 1];
      if (coded >> 1 > 0) {
        part.write(read(slices.slices()[2 * i], (int) (coded >> 1)));
      }
      if ((coded & 1) == 1) {
        parts.add(part.toByteArray());
        part.reset();
      }
    }
    return parts;
  }
}
