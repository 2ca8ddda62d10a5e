package io.faro;

/**
 * Base of all that can go wrong in Faro in operation.
 *
 * <p>Checked on purpose: a failure of Faro is an ordinary event with an ordinary answer (the caller
 * fetches in another way), and the compiler keeps a caller from forgetting it. Misuse of the API
 * (a buffer read after its release, a second release) is an {@link IllegalStateException} instead.
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
