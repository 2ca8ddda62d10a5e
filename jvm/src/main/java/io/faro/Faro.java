package io.faro;

/** Whether the native library can be used here; asking loads it. */
public final class Faro {
  private Faro() {}

  public static boolean isAvailable() {
    return unavailabilityCause() == null;
  }

  /** Throws {@link FaroUnavailableException} when the native library cannot be used. */
  public static void ensureAvailability() throws FaroUnavailableException {
    throw new UnsupportedOperationException();
  }

  /** Why not, or {@code null} when it is available. */
  public static Throwable unavailabilityCause() {
    throw new UnsupportedOperationException();
  }

  /** Version of this jar (and, when available, of the native library: they are equal). */
  public static String version() {
    throw new UnsupportedOperationException();
  }
}
