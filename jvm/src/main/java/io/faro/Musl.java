package io.faro;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** Detects musl, a C library for which Faro's native library is not built. */
final class Musl {
  /** The beginning of musl's file name; the loader and the C library are one file. */
  private static final String LOADER = "/ld-musl-";

  private Musl() {}

  /** Returns the path of musl in a file like {@code /proc/self/maps}; null if musl is not mapped. */
  @Nullable static String loader(Path maps) {
    try {
      // Paths may be in any encoding.
      for (String line : Files.readAllLines(maps, StandardCharsets.ISO_8859_1)) {
        int path = line.indexOf('/');
        if (line.contains(LOADER)) {
          return line.substring(path);
        }
      }
    } catch (IOException e) {
      // Without /proc, musl cannot be detected.
      return null;
    }
    return null;
  }
}
