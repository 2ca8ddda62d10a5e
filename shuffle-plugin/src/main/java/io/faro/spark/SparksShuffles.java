package io.faro.spark;

/**
 * Tells which shuffles are Spark's alone, as {@link FaroBlockStoreClient} asks when it is to fetch, on the task's
 * thread.
 */
interface SparksShuffles {
  boolean has(int shuffleId);
}
