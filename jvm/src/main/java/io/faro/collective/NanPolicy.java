package io.faro.collective;

/** What a value that is not a number does to a round. */
public enum NanPolicy {
  /** It fails the round of every member with the rank that has it and its position; so does a sum that becomes one. */
  FAIL,
  /** It is added like any other value. */
  PROPAGATE
}
