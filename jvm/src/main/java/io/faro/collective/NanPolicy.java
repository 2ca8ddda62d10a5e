package io.faro.collective;

/** The treatment of a value that is not a number. */
public enum NanPolicy {
  /**
   * The round fails at every member, with the rank and the position of the value. It also fails if a sum becomes NaN.
   */
  FAIL,
  /** The value is added like any other. */
  PROPAGATE
}
