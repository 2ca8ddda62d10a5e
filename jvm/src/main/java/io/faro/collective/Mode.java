package io.faro.collective;

/** The members that exchange values in a round. */
public enum Mode {
  /**
   * DS-Sync: the mean or sum within a small group only. Groups are shuffled in every round, so values spread over the
   * whole team in a few rounds, and no member waits for one outside its group. A round keeps the mean over all members,
   * but values still differ from group to group; {@link GroupedAllReduce#meanOfAll} makes them the same in the end.
   */
  DSSYNC(1),
  /** Exact over all members, along the rows and columns of a grid: the bytes of a ring in four steps. */
  GRID(2),
  /** Exact over all members, by a ring: one partner on each side, but 2(N - 1) steps. */
  FULL(3);

  private final int code;

  Mode(int code) {
    this.code = code;
  }

  int code() {
    return code;
  }
}
