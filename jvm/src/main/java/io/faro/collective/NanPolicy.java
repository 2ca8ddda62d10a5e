package io.faro.collective;

/** Treatment in a round of a value that is not a number. */
public enum NanPolicy {
  /** The round fails at every member with the rank and the position of the value; also if a sum becomes NaN. */
  FAIL,
  /** It is added like any other value. */
  PROPAGATE
}
