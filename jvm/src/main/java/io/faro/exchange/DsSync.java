package io.faro.exchange;

import java.util.Arrays;

/** Groups of a DS-Sync round: the same as native/exchange/src/collective/groups.rs. */
public final class DsSync {
  private DsSync() {}

  /**
   * Disjoint groups that cover ranks 0 to {@code ranks} - 1 once, of at least {@code group} and less than twice as many
   * members, shuffled anew for each round.
   */
  public static int[][] groups(int ranks, int group, long epoch, long round) {
    if (ranks > 1 && (group < 2 || group > ranks)) {
      throw new IllegalArgumentException("group size " + group + " is not within 2 and the number of ranks, " + ranks);
    }
    int[] order = new int[ranks];
    Arrays.setAll(order, i -> i);
    SplitMix64.stream(epoch, round).shuffle(order);
    int[][] groups = new int[Math.max(1, ranks / Math.max(1, group))][];
    int from = 0;
    for (int g = 0; g < groups.length; g++) {
      int to = from + ranks / groups.length + (g < ranks % groups.length ? 1 : 0);
      groups[g] = Arrays.copyOfRange(order, from, to);
      Arrays.sort(groups[g]);
      from = to;
    }
    return groups;
  }
}
