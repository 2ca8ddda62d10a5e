/**
 * Spark SQL's shuffle reads: blocks are fetched in groups by Spark's own fetch iterator and decoded into rows by native
 * code. Nothing here knows how a block travels ({@link io.faro.spark.rows.PartClient}).
 */
package io.faro.spark.rows;
