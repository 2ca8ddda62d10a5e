package io.faro;

/**
 * Faro cannot fetch some blocks. There is a nested type for each FetchErrorCode of native/wire (codes.rs), so that a
 * caller can decide whether to retry.
 */
public abstract class FetchException extends FaroException {
  private static final long serialVersionUID = 1L;

  private final long peer;
  private final long request;
  private final int firstBlock;
  private final int blockCount;
  private final String detail;

  private FetchException(String what, Failed failed) {
    super(
        what + ": " + (failed.detail.isEmpty() ? "no detail" : failed.detail)
            + " (blocks " + failed.firstBlock + " to " + (failed.firstBlock + failed.blockCount - 1L)
            + " of request " + failed.request + " to peer " + failed.peer + ")");
    this.peer = failed.peer;
    this.request = failed.request;
    this.firstBlock = failed.firstBlock;
    this.blockCount = failed.blockCount;
    this.detail = failed.detail;
  }

  /** Peer handle of {@link Endpoint#addPeer}. */
  public final long peer() {
    return peer;
  }

  public final long request() {
    return request;
  }

  /** Position in the request of the first block that failed. */
  public final int firstBlock() {
    return firstBlock;
  }

  /** The number of blocks, from {@link #firstBlock} on, that failed. */
  public final int blockCount() {
    return blockCount;
  }

  /** The message of native code. */
  public final String detail() {
    return detail;
  }

  /** The values that all types share. */
  static final class Failed {
    final long peer;
    final long request;
    final int firstBlock;
    final int blockCount;
    final String detail;

    Failed(long peer, long request, int firstBlock, int blockCount, String detail) {
      this.peer = peer;
      this.request = request;
      this.firstBlock = firstBlock;
      this.blockCount = blockCount;
      this.detail = detail;
    }
  }

  /** The type for a FetchErrorCode; an unknown code is a protocol error. */
  static FetchException of(int code, Failed failed) {
    switch (code) {
      case 1:
        return new Unreachable(failed);
      case 2:
        return new ConnectionLost(failed);
      case 3:
        return new TimedOut(failed);
      case 4:
        return new Corrupt(failed);
      case 5:
        return new PoolExhausted(failed);
      case 6:
        return new Refused(failed);
      case 8:
        return new Closing(failed);
      case 9:
        return new Cancelled(failed);
      default:
        return new Protocol(failed);
    }
  }

  /** No fabric reaches the peer. */
  public static final class Unreachable extends FetchException {
    private static final long serialVersionUID = 1L;

    Unreachable(Failed failed) {
      super("peer unreachable", failed);
    }
  }

  /** The connection was lost, and the retry as well. */
  public static final class ConnectionLost extends FetchException {
    private static final long serialVersionUID = 1L;

    ConnectionLost(Failed failed) {
      super("connection lost", failed);
    }
  }

  /** The request's deadline passed. */
  public static final class TimedOut extends FetchException {
    private static final long serialVersionUID = 1L;

    TimedOut(Failed failed) {
      super("deadline passed", failed);
    }
  }

  /** Bytes arrived whose CRC disagrees. */
  public static final class Corrupt extends FetchException {
    private static final long serialVersionUID = 1L;

    Corrupt(Failed failed) {
      super("corrupt bytes", failed);
    }
  }

  /** The arena had no room before the wait's deadline. */
  public static final class PoolExhausted extends FetchException {
    private static final long serialVersionUID = 1L;

    PoolExhausted(Failed failed) {
      super("arena exhausted", failed);
    }
  }

  /** The peer refused or failed the request. */
  public static final class Refused extends FetchException {
    private static final long serialVersionUID = 1L;

    Refused(Failed failed) {
      super("refused by the peer", failed);
    }
  }

  /** The peer broke the protocol. */
  public static final class Protocol extends FetchException {
    private static final long serialVersionUID = 1L;

    Protocol(Failed failed) {
      super("protocol error", failed);
    }
  }

  /** This endpoint is closing. */
  public static final class Closing extends FetchException {
    private static final long serialVersionUID = 1L;

    Closing(Failed failed) {
      super("endpoint closing", failed);
    }
  }

  /** The caller cancelled. */
  public static final class Cancelled extends FetchException {
    private static final long serialVersionUID = 1L;

    Cancelled(Failed failed) {
      super("cancelled", failed);
    }
  }
}
