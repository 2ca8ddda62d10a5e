package io.faro;

/** The server's answer for one block. The codes are BlockStatus of native/wire (block.rs). */
public enum BlockStatus {
  /** The bytes follow. */
  OK(0),
  /** The server has no such map output. */
  UNKNOWN_OUTPUT(1),
  /** The reduce range lies outside the map output's partitions, or is empty or reversed. */
  BAD_RANGE(2),
  /** The index file is truncated, or its offsets run backwards or beyond the data file. */
  BAD_INDEX(3),
  /** The operating system refused to read the file. */
  UNREADABLE(4),
  /** A status that this version does not know. */
  UNKNOWN(5);

  private static final BlockStatus[] BY_CODE = values();

  private final int code;

  BlockStatus(int code) {
    this.code = code;
  }

  int code() {
    return code;
  }

  static BlockStatus ofCode(int code) {
    return code >= 0 && code < UNKNOWN.code ? BY_CODE[code] : UNKNOWN;
  }
}
