package io.faro.spark.fetch;

/**
 * Tells which shuffles are Spark's alone, as {@link FaroBlockStoreClient} asks when it is to fetch, on the task's
 * thread.
 */
public interface SparkShuffles {
  boolean has(int shuffleId);
}
