package io.faro;

/**
 * Base class of Faro's failures in operation.
 *
 * <p>It is a checked exception: callers must expect a failure of Faro and fetch in another way. Misuse of the API (a
 * buffer read after its release, a second release) throws an {@link IllegalStateException} instead.
 */
public class FaroException extends Exception {
  private static final long serialVersionUID = 1L;

  public FaroException(String message) {
    super(message);
  }

  public FaroException(String message, Throwable cause) {
    super(message, cause);
  }
}
