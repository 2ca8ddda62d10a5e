package io.faro;

import java.io.File;
import java.nio.file.Paths;

/** The native library, for tests in other packages: {@code -Dfaro.library.path}, else the newest that cargo built. */
public final class TestLibrary {
  private TestLibrary() {}

  public static void load() throws FaroException {
    if (System.getProperty(NativeLibrary.PATH_PROPERTY) == null) {
      System.setProperty(NativeLibrary.PATH_PROPERTY, newest().getAbsolutePath());
    }
    Faro.ensureAvailability();
  }

  private static File newest() {
    File newest = null;
    for (String profile : new String[] {"release", "debug"}) {
      File file = Paths.get(System.getProperty("faro.root"), "target", profile, NativeLibrary.FILE).toFile();
      if (file.isFile() && (newest == null || file.lastModified() > newest.lastModified())) {
        newest = file;
      }
    }
    if (newest == null) {
      throw new IllegalStateException("no native library: run `cargo build -p faro-jni` first");
    }
    return newest;
  }
}
