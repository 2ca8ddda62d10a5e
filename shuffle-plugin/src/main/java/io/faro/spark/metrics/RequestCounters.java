package io.faro.spark.metrics;

import io.faro.Fabric;

/** The blocks and bytes of one request by fabric. One thread may end a request while another delivers blocks. */
public final class RequestCounters {
  static final int FABRICS = Fabric.values().length;

  private final long[] blocks = new long[FABRICS];
  private final long[] bytes = new long[FABRICS];

  /** {@code begins}: these are a block's first bytes. */
  public synchronized void block(Fabric fabric, long length, boolean begins) {
    blocks[fabric.ordinal()] += begins ? 1 : 0;
    bytes[fabric.ordinal()] += length;
  }

  synchronized long blocks(Fabric fabric) {
    return blocks[fabric.ordinal()];
  }

  synchronized long bytes(Fabric fabric) {
    return bytes[fabric.ordinal()];
  }
}
