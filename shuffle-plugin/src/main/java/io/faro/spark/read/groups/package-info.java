/**
 * The parts that a reader fetches: in groups, by Spark's own fetch iterator, and what happens to those that fail.
 * Nothing here knows how a block travels ({@link io.faro.spark.read.groups.PartClient}).
 */
package io.faro.spark.read.groups;
