package io.faro;

import java.io.File;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * Loads the native library, on the first call. The library is optional, like Netty's epoll transport: a program can go
 * on without it and report why.
 */
public final class Faro {
  private static volatile List<File> places = Collections.emptyList();

  private Faro() {}

  /** Loads once, when first asked. */
  private static final class Loaded {
    static final FaroUnavailableException CAUSE = load();

    private static FaroUnavailableException load() {
      try {
        NativeLibrary.ofThisProcess(places).load();
        LogBridge.start();
        return null;
      } catch (FaroUnavailableException e) {
        return e;
      } catch (Throwable t) {
        return new FaroUnavailableException("the native library cannot be loaded: " + t, t);
      }
    }
  }

  /**
   * Where the library is extracted to if {@code java.io.tmpdir} does not allow it, in this order. Has no effect once
   * the library was loaded, or with {@code -Dfaro.tmpdir}, which is the only place then.
   */
  public static void extractAlsoTo(List<File> directories) {
    places = Collections.unmodifiableList(new ArrayList<>(directories));
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
