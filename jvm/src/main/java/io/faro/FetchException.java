package io.faro;

/** Faro cannot fetch some blocks; {@link #error} gives the reason. */
public final class FetchException extends FaroException {
  private static final long serialVersionUID = 1L;

  private final FetchError error;
  private final long peer;
  private final long request;
  private final int firstBlock;
  private final int blockCount;
  private final String detail;

  FetchException(FetchError error, long peer, long request, int firstBlock, int blockCount, String detail) {
    super(
        error.what + ": " + (detail.isEmpty() ? "no detail" : detail) + " (blocks " + firstBlock + " to "
            + (firstBlock + blockCount - 1L) + " of request " + request + " to peer " + peer + ")");
    this.error = error;
    this.peer = peer;
    this.request = request;
    this.firstBlock = firstBlock;
    this.blockCount = blockCount;
    this.detail = detail;
  }

  public FetchError error() {
    return error;
  }

  /** Returns the peer's handle, as returned by {@link Endpoint#addPeer}. */
  public long peer() {
    return peer;
  }

  public long request() {
    return request;
  }

  /** Returns the position in the request of the first block that failed. */
  public int firstBlock() {
    return firstBlock;
  }

  /** Returns the number of blocks that failed, from {@link #firstBlock} on. */
  public int blockCount() {
    return blockCount;
  }

  public String detail() {
    return detail;
  }
}
