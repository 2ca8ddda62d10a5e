package io.faro;

/** In which order an endpoint reads from its peers and serves them, and from how many at once. */
public enum ExchangePolicy {
  /** By small groups, about the root of the number of endpoints at a time. */
  GROUPED("grouped"),
  /** Around a ring, as many at a time as with {@link #GROUPED}. */
  ROTATED("rotated"),
  /** All at once, in the order in which requests come. */
  RANDOM("random");

  /** As in the configuration. */
  public final String code;

  ExchangePolicy(String code) {
    this.code = code;
  }
}
