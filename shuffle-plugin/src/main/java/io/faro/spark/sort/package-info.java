/**
 * Sorts of Spark SQL behind a shuffle: a rule puts Faro's node in place of Spark's, and a task sorts its rows in pages
 * of Spark's memory, by native code. What it cannot do is left to Spark's own sorter.
 */
package io.faro.spark.sort;
