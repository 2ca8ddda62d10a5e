package io.faro.exchange;

import java.util.List;

/**
 * The schedule's only source of chance, the same as native/exchange/src/rng.rs: Java's wrapping {@code long} arithmetic
 * gives the same bits.
 */
final class SplitMix64 {
  private long state;

  SplitMix64(long seed) {
    state = seed;
  }

  /** An independent generator for item {@code index} of {@code seed}. */
  static SplitMix64 stream(long seed, long index) {
    return new SplitMix64(new SplitMix64(seed).next() ^ new SplitMix64(index).next());
  }

  long next() {
    state += 0x9E3779B97F4A7C15L;
    long z = state;
    z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
    z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
    return z ^ (z >>> 31);
  }

  /** A value below {@code n}. The product of 32 and 31 bits fits a signed long. */
  int below(int n) {
    return (int) (((next() >>> 32) * n) >>> 32);
  }

  void shuffle(int[] items) {
    for (int i = items.length - 1; i > 0; i--) {
      int j = below(i + 1);
      int item = items[i];
      items[i] = items[j];
      items[j] = item;
    }
  }

  <T> void shuffle(List<T> items) {
    for (int i = items.size() - 1; i > 0; i--) {
      items.set(i, items.set(below(i + 1), items.get(i)));
    }
  }
}
