package io.faro.bench;

import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.util.Random;

/**
 * Map outputs in Spark's layout: data and index file, spread over 64 directories by the hash of their names as
 * DiskBlockManager does. A block's bytes depend on its ids only, so that a reader can check them without the files.
 */
final class ShuffleFiles {
  private static final int SUB_DIRECTORIES = 64;
  /** The number is prime, so that blocks of a power of two do not repeat in step. */
  private static final int NOISE_BYTES = 262_147;

  private final File root;
  private final byte[] noise = new byte[NOISE_BYTES];

  ShuffleFiles(File root) {
    this.root = root;
    new Random(20_240_229).nextBytes(noise);
  }

  File data(int shuffle, long map) {
    return file("shuffle_" + shuffle + "_" + map + "_0.data");
  }

  File index(int shuffle, long map) {
    return file("shuffle_" + shuffle + "_" + map + "_0.index");
  }

  private File file(String name) {
    String directory = String.format("%02x", Math.abs(name.hashCode() % SUB_DIRECTORIES));
    return new File(new File(root, directory), name);
  }

  void write(Shape shape) throws IOException {
    for (int map = 0; map < shape.maps; map++) {
      File data = data(shape.shuffle, map);
      File index = index(shape.shuffle, map);
      makeDirectory(data.getParentFile());
      makeDirectory(index.getParentFile());
      try (OutputStream out = new BufferedOutputStream(new FileOutputStream(data), 1 << 20)) {
        for (int reduce = 0; reduce < shape.reducers; reduce++) {
          writeBlock(out, start(shape.shuffle, map, reduce), shape.blockBytes);
        }
      }
      try (DataOutputStream out = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(index)))) {
        for (int reduce = 0; reduce <= shape.reducers; reduce++) {
          out.writeLong((long) reduce * shape.blockBytes);
        }
      }
    }
  }

  private static void makeDirectory(File directory) throws IOException {
    if (!directory.isDirectory() && !directory.mkdirs()) {
      throw new IOException("cannot make " + directory);
    }
  }

  private void writeBlock(OutputStream out, int start, int length) throws IOException {
    int at = start;
    for (int left = length; left > 0; ) {
      int n = Math.min(left, NOISE_BYTES - at);
      out.write(noise, at, n);
      left -= n;
      at = 0;
    }
  }

  /** Returns the position in the noise at which a block starts. */
  private static int start(int shuffle, long map, int reduce) {
    long mixed = (shuffle * 1_000_003L + map) * 1_000_003L + reduce;
    mixed *= 0x9E3779B97F4A7C15L;
    return (int) ((mixed >>> 33) % NOISE_BYTES);
  }

  /** Returns whether {@code bytes} begins with the {@code length} bytes of the block from {@code offset} on. */
  boolean matches(String blockId, int offset, byte[] bytes, int length) {
    String[] ids = blockId.split("_");
    int start = start(Integer.parseInt(ids[1]), Long.parseLong(ids[2]), Integer.parseInt(ids[3]));
    int at = (int) (((long) start + offset) % NOISE_BYTES);
    for (int i = 0; i < length; i++) {
      if (bytes[i] != noise[at]) {
        return false;
      }
      at = at + 1 == NOISE_BYTES ? 0 : at + 1;
    }
    return true;
  }
}
