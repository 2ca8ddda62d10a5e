package io.faro;

/**
 * A call of the endpoint failed as a whole; failures of single blocks are {@link FetchException}s. The nested types are
 * the cases that a caller can handle.
 */
public class EndpointException extends FaroException {
  private static final long serialVersionUID = 1L;

  public EndpointException(String message) {
    super(message);
  }

  /** The endpoint was closed, by the application or at the end of the process. */
  public static final class Closed extends EndpointException {
    private static final long serialVersionUID = 1L;

    public Closed(String message) {
      super(message);
    }
  }

  /** The number of requests in flight is at its limit: fetch in another way, or later. */
  public static final class Full extends EndpointException {
    private static final long serialVersionUID = 1L;

    public Full(String message) {
      super(message);
    }
  }

  /** The arena's memory for this purpose is used up: release some of it first, or wait longer. */
  public static final class Exhausted extends EndpointException {
    private static final long serialVersionUID = 1L;

    public Exhausted(String message) {
      super(message);
    }
  }

  /** A peer's card cannot be read: it is damaged, or another version of Faro wrote it. */
  public static final class BadCard extends EndpointException {
    private static final long serialVersionUID = 1L;

    public BadCard(String message) {
      super(message);
    }
  }

  /** A bug in native code (a panic), with the panic's message. The process continues. */
  public static final class NativeFault extends EndpointException {
    private static final long serialVersionUID = 1L;

    public NativeFault(String message) {
      super(message);
    }
  }
}
