package io.faro;

/** The native library cannot be used in this process; the message says why and what to change. */
public final class FaroUnavailableException extends FaroException {
  private static final long serialVersionUID = 1L;

  public FaroUnavailableException(String message) {
    super(message);
  }

  public FaroUnavailableException(String message, Throwable cause) {
    super(message, cause);
  }
}
