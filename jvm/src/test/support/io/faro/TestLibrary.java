package io.faro;

/** The native library, for tests in other packages. */
public final class TestLibrary {
  private TestLibrary() {}

  public static void load() throws FaroException {
    Repository.loadNative();
  }
}
