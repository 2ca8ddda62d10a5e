package io.faro;

/**
 * The endpoint cannot do what was asked, as a whole; what becomes of single blocks is a {@link FetchException}.
 * The nested types are the cases that a caller can act on.
 */
public class EndpointException extends FaroException {
  private static final long serialVersionUID = 1L;

  public EndpointException(String message) {
    super(message);
  }

  /** The endpoint was closed, by its owner or at the end of the process. */
  public static final class Closed extends EndpointException {
    private static final long serialVersionUID = 1L;

    public Closed(String message) {
      super(message);
    }
  }

  /** As many requests are in flight as there may be: fetch in another way, or later. */
  public static final class Full extends EndpointException {
    private static final long serialVersionUID = 1L;

    public Full(String message) {
      super(message);
    }
  }

  /** All of the arena that may be had for this is taken: release something first, or wait longer. */
  public static final class Exhausted extends EndpointException {
    private static final long serialVersionUID = 1L;

    public Exhausted(String message) {
      super(message);
    }
  }

  /** A peer's card cannot be read: damaged, or written by a version of Faro that this one does not know. */
  public static final class BadCard extends EndpointException {
    private static final long serialVersionUID = 1L;

    public BadCard(String message) {
      super(message);
    }
  }

  /** A defect of the native code (a panic); the message is the panic's. The process goes on. */
  public static final class NativeFault extends EndpointException {
    private static final long serialVersionUID = 1L;

    public NativeFault(String message) {
      super(message);
    }
  }
}
