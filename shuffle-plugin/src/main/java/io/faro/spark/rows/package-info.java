/**
 * Shuffle reads: blocks are fetched in groups by Spark's own fetch iterator, and decoded into Spark SQL's rows by native
 * code or deserialised as one stream for each group. Nothing here knows how a block travels ({@link
 * io.faro.spark.rows.PartClient}).
 */
package io.faro.spark.rows;
