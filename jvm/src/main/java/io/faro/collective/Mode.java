package io.faro.collective;

/** Choice of the members that exchange values in a round. */
public enum Mode {
  /**
   * DS-Sync: the mean or sum within a small group only. Membership is shuffled in every round, so values spread over
   * the whole team in a few rounds; no member waits for one outside its group. Of the members' values the mean
   * stays what it was (with a mean, and groups of one size), but after a round they still differ from group to group.
   */
  DSSYNC(1),
  /** Exact over all members, along the rows and then the columns of a grid: four steps, partners about 2√N. */
  GRID(2),
  /** Exact over all members, by a ring: the least bytes and one partner on each side, but 2(N - 1) steps. */
  FULL(3);

  private final int code;

  Mode(int code) {
    this.code = code;
  }

  int code() {
    return code;
  }
}
