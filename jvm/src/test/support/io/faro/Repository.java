package io.faro;

import static org.junit.jupiter.api.Assertions.fail;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;

/** Finds the files that tests take from the repository: golden files and the native library. */
final class Repository {
  private Repository() {}

  private static Path root() {
    return Paths.get(System.getProperty("faro.root", ".."));
  }

  static Path file(String path) {
    return root().resolve(path);
  }

  /**
   * Returns the bytes of tests/golden/{@code name}.hex: hex digits, with comments from {@code #} to the end of a line.
   */
  static byte[] golden(String name) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    for (String line : Files.readAllLines(root().resolve("tests/golden").resolve(name + ".hex"))) {
      for (String digits : line.replaceAll("#.*", "").trim().split("\\s+")) {
        if (!digits.isEmpty()) {
          bytes.write(Integer.parseInt(digits, 16));
        }
      }
    }
    return bytes.toByteArray();
  }

  /** Returns the library under test: {@code -Dfaro.library.path}, or else the newest one that cargo built here. */
  static File library() {
    String given = System.getProperty(NativeLibrary.PATH_PROPERTY);
    if (given != null) {
      File file = new File(given);
      return file.isDirectory() ? new File(file, NativeLibrary.FILE) : file;
    }
    File newest = null;
    for (String profile : new String[] {"release", "debug"}) {
      File file = root().resolve("target").resolve(profile).resolve(NativeLibrary.FILE).toFile();
      if (file.isFile() && (newest == null || file.lastModified() > newest.lastModified())) {
        newest = file;
      }
    }
    return newest == null ? fail("no native library: run `cargo build -p faro-jni` first") : newest;
  }

  /** Makes {@link Faro} load {@link #library}, or fails. */
  static void loadNative() throws FaroException {
    System.setProperty(NativeLibrary.PATH_PROPERTY, library().getAbsolutePath());
    Faro.ensureAvailability();
  }
}
