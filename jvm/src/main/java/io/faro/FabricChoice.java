package io.faro;

/** Which fabrics an endpoint opens. */
public enum FabricChoice {
  /** All that work here; the best one is taken for each pair of endpoints. */
  AUTO(0),
  TCP(1),
  /** Shared memory only: reaches endpoints of the same host and nothing else. */
  SHM(2),
  /** RDMA only: reaches endpoints of hosts that have a device as well. */
  VERBS(3);

  private final int code;

  FabricChoice(int code) {
    this.code = code;
  }

  int code() {
    return code;
  }
}
