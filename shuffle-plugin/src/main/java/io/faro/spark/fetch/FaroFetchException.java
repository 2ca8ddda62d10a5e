package io.faro.spark.fetch;

import java.io.IOException;

/** Faro did not deliver a block, and a setting does not allow Spark's own fetch. */
public final class FaroFetchException extends IOException {
  private static final long serialVersionUID = 1L;

  private final String block;
  private final String executor;
  private final String hostPort;

  FaroFetchException(String block, FallBack.UndeliveredBlocks lost, String fabric, String why) {
    super(
        block + " was not delivered by Faro from " + lost.peer + " (spark.faro.fabric=" + fabric + "): "
            + lost.reason.key + (lost.cause == null ? "" : ": " + lost.cause) + "; " + lost.reason.hint
            + "; " + why,
        lost.cause);
    this.block = block;
    this.executor = lost.peer.executor;
    this.hostPort = lost.peer.host + ":" + lost.peer.port;
  }

  public String block() {
    return block;
  }

  public String executor() {
    return executor;
  }

  public String hostPort() {
    return hostPort;
  }
}
