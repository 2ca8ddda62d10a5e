package io.faro;

/** Fabrics that an endpoint opens. */
public enum FabricChoice {
  /** All that work here; each pair of endpoints uses the best one that both have. */
  AUTO("auto"),
  TCP("tcp"),
  /** Shared memory only: reaches endpoints of the same host and nothing else. */
  SHM("shm"),
  /** RDMA only: reaches endpoints of hosts that have a device as well. */
  VERBS("verbs");

  /** The value's name in the configuration. */
  final String code;

  FabricChoice(String code) {
    this.code = code;
  }
}
