package io.faro;

/** How map outputs are made readable for RDMA devices. Without RDMA all are {@link #UNPINNED}. */
public enum RegionMode {
  /** Not at all: their bytes pass through frames of the arena. */
  UNPINNED("unpinned"),
  /** Each is mapped and registered as a whole, on demand: the device faults pages in, if it can. */
  ODP("odp"),
  /** Each is mapped and registered as a whole, which pins all of it. */
  PINNED("pinned");

  /** As in the configuration. */
  public final String code;

  RegionMode(String code) {
    this.code = code;
  }
}
