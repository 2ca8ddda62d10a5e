package io.faro;

/** The fabrics that an endpoint opens. */
public enum FabricChoice {
  /** All fabrics that work on this host; each pair of endpoints uses the best one that both have. */
  AUTO("auto"),
  TCP("tcp"),
  /** Shared memory only: reaches endpoints on the same host and nothing else. */
  SHM("shm"),
  /** RDMA only: reaches endpoints on hosts that have an RDMA device as well. */
  VERBS("verbs");

  /** The value's name in the configuration. */
  final String code;

  FabricChoice(String code) {
    this.code = code;
  }
}
