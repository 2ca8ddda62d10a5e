package io.faro.collective;

/** What happens in a round with a value that is not a number. */
public enum NanPolicy {
  /** The round fails at every member with the rank and the position of the value; also if a sum becomes NaN. */
  FAIL,
  /** It is added like any other value. */
  PROPAGATE
}
