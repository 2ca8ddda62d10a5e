package io.faro;

import java.nio.file.Path;

/** The native library and files of the repository, for tests in other packages. */
public final class TestLibrary {
  private TestLibrary() {}

  public static void load() throws FaroException {
    Repository.loadNative();
  }

  /** Returns a file of the repository. */
  public static Path file(String path) {
    return Repository.file(path);
  }
}
