package io.faro.spark;

import java.io.IOException;

/** A block that did not come through Faro where {@code spark.faro.fallback=never} allows no other way. */
public final class FaroFetchException extends IOException {
  private static final long serialVersionUID = 1L;

  private final String block;
  private final String executor;
  private final String hostPort;

  FaroFetchException(String block, FallBack.Rest rest, String fabric) {
    super(
        block + " did not come through Faro from " + rest.peer + " (spark.faro.fabric=" + fabric + "): "
            + rest.reason.key + (rest.cause == null ? "" : ": " + rest.cause) + "; " + rest.reason.hint
            + (rest.files == null ? "" : "; a block above spark.network.maxRemoteBlockSizeFetchToMem must fit into "
                + "spark.faro.memory.limit on its way to its file")
            + "; spark.faro.fallback=never keeps Spark's own fetch from bringing it",
        rest.cause);
    this.block = block;
    this.executor = rest.peer.executor;
    this.hostPort = rest.peer.host + ":" + rest.peer.port;
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
