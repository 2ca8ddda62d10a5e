package io.faro;

/** The transport of a block's bytes. The codes are those of native/fabric/src/kind.rs. */
public enum Fabric {
  /** No fabric: every block of the batch is missing or empty, so there are no bytes. */
  NONE(0),
  TCP(1),
  /** Shared memory within one host. */
  SHM(2),
  /** RDMA. */
  VERBS(3);

  private static final Fabric[] BY_CODE = values();

  private final int code;

  Fabric(int code) {
    this.code = code;
  }

  int code() {
    return code;
  }

  static Fabric ofCode(int code) {
    return code >= 0 && code < BY_CODE.length ? BY_CODE[code] : NONE;
  }
}
