package io.faro;

/**
 * The reason that a fetch failed, by which a caller decides whether to retry. The codes are FetchErrorCode of
 * native/wire (codes.rs).
 */
public enum FetchError {
  /** No fabric reaches the peer. */
  UNREACHABLE(1, "peer unreachable"),
  /** The connection was lost, and the retry failed as well. */
  CONNECTION_LOST(2, "connection lost"),
  TIMED_OUT(3, "deadline passed"),
  /** Bytes arrived with a wrong CRC. */
  CORRUPT(4, "corrupt bytes"),
  /** The arena had no memory before the deadline. */
  POOL_EXHAUSTED(5, "arena exhausted"),
  /** The peer refused the request or could not serve it. */
  REFUSED(6, "refused by the peer"),
  PROTOCOL(7, "protocol error"),
  /** This endpoint is closing. */
  CLOSING(8, "endpoint closing"),
  CANCELLED(9, "cancelled");

  private static final FetchError[] ALL = values();

  private final int code;
  final String what;

  FetchError(int code, String what) {
    this.code = code;
    this.what = what;
  }

  int code() {
    return code;
  }

  /** Returns the error of a code; an unknown code is a protocol error. */
  static FetchError ofCode(int code) {
    return code >= 1 && code <= ALL.length ? ALL[code - 1] : PROTOCOL;
  }
}
