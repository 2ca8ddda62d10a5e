package io.faro.spark.service;

import java.util.stream.IntStream;

/**
 * Rendezvous hashing: each host has a score for each map output, and those with the highest scores have its copies. The
 * services calculate the same ({@code native/service/src/replica/placement.rs}).
 */
final class Placement {
  /** The step of SplitMix64; {@link #mix} is its finish. */
  private static final long STEP = 0x9e3779b97f4a7c15L;

  private Placement() {}

  private static long mix(long from) {
    long x = (from ^ (from >>> 30)) * 0xbf58476d1ce4e5b9L;
    x = (x ^ (x >>> 27)) * 0x94d049bb133111ebL;
    return x ^ (x >>> 31);
  }

  private static long score(int host, int shuffle, long map) {
    return mix(mix(mix(host + STEP) ^ shuffle) ^ map);
  }

  /** Hosts but {@code source}, which has the output; the first to get a copy first, at most {@code max}. */
  static int[] order(IntStream hosts, int source, int shuffle, long map, int max) {
    return hosts.filter(host -> host != source).boxed()
        .sorted((a, b) -> {
          int byScore = Long.compareUnsigned(score(b, shuffle, map), score(a, shuffle, map));
          return byScore == 0 ? Integer.compare(a, b) : byScore;
        })
        .limit(max).mapToInt(Integer::intValue).toArray();
  }
}
