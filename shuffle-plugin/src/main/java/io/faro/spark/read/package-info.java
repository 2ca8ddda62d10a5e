/** Shuffle reads: which reader has a shuffle, Faro's for rows, Faro's for other records, or Spark's own. */
package io.faro.spark.read;
