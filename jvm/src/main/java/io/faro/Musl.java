package io.faro;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** Whether a process runs on musl, another C library than glibc, for which Faro's native library is not built. */
final class Musl {
  /** Musl is one file, loader and C library together, and is mapped under this name. */
  private static final String LOADER = "/ld-musl-";

  private Musl() {}

  /** The path of musl in a file like {@code /proc/self/maps}; {@code null}: it is not there. */
  static String loader(Path maps) {
    try {
      // Paths are bytes of any encoding.
      for (String line : Files.readAllLines(maps, StandardCharsets.ISO_8859_1)) {
        int path = line.indexOf('/');
        if (line.contains(LOADER)) {
          return line.substring(path);
        }
      }
    } catch (IOException e) {
      // Without /proc nothing is known.
      return null;
    }
    return null;
  }
}
