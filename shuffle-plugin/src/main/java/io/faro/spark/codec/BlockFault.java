package io.faro.spark.codec;

/** Reason why a block cannot be decoded; the stream that reads it adds where it is. */
final class BlockFault extends Exception {
  private static final long serialVersionUID = 1;

  BlockFault(String why) {
    super(why);
  }

  BlockFault(String why, Throwable cause) {
    super(why, cause);
  }
}
