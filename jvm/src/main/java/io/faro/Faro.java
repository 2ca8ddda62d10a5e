package io.faro;

/**
 * Loads the native library, on the first call. The library is optional, like Netty's epoll transport: a program can go
 * on without it and report why.
 */
public final class Faro {
  private Faro() {}

  /** Loads once, when first asked. */
  private static final class Loaded {
    static final FaroUnavailableException CAUSE = load();

    private static FaroUnavailableException load() {
      try {
        NativeLibrary.ofThisProcess().load();
        LogBridge.start();
        return null;
      } catch (FaroUnavailableException e) {
        return e;
      } catch (Throwable t) {
        return new FaroUnavailableException("the native library cannot be loaded: " + t, t);
      }
    }
  }

  public static boolean isAvailable() {
    return unavailabilityCause() == null;
  }

  /** Throws {@link FaroUnavailableException} when the native library cannot be used. */
  public static void ensureAvailability() throws FaroUnavailableException {
    if (Loaded.CAUSE != null) {
      throw new FaroUnavailableException(Loaded.CAUSE.getMessage(), Loaded.CAUSE);
    }
  }

  /** Why not, or {@code null} when it is available. */
  public static Throwable unavailabilityCause() {
    return Loaded.CAUSE;
  }

  /** Version of this jar (and, when available, of the native library: they are equal). */
  public static String version() {
    return NativeLibrary.jarVersion();
  }
}
