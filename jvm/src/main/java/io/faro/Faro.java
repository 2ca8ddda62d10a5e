package io.faro;

import java.io.File;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * Loads the native library, on the first call. The library is optional, like Netty's epoll transport: a program can
 * continue without it and report the reason.
 */
public final class Faro {
  private static volatile List<File> places = Collections.emptyList();

  private Faro() {}

  /** Loads the library once, on first use of this class. */
  private static final class LibraryHolder {
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
   * Sets places to extract the library to if {@code java.io.tmpdir} does not allow it, in this order. Has no effect
   * after the library was loaded, or with {@code -Dfaro.tmpdir}, which is then the only place.
   */
  public static void extractAlsoTo(List<File> directories) {
    places = Collections.unmodifiableList(new ArrayList<>(directories));
  }

  public static boolean isAvailable() {
    return unavailabilityCause() == null;
  }

  /** Throws {@link FaroUnavailableException} if the native library cannot be used. */
  public static void ensureAvailability() throws FaroUnavailableException {
    if (LibraryHolder.CAUSE != null) {
      throw new FaroUnavailableException(LibraryHolder.CAUSE.getMessage(), LibraryHolder.CAUSE);
    }
  }

  /** Returns the reason that the library cannot be used, or null if it can. */
  @Nullable public static Throwable unavailabilityCause() {
    return LibraryHolder.CAUSE;
  }

  /** Returns the version of this jar; an available native library has the same version. */
  public static String version() {
    return NativeLibrary.jarVersion();
  }
}
