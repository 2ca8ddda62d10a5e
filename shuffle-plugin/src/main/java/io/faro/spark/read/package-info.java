/**
 * Shuffle reads: Spark's own fetch iterator fetches blocks in groups. Native code decodes them into Spark SQL's rows,
 * or the shuffle's serializer deserialises each group as one stream. Nothing here knows how a block travels ({@link
 * io.faro.spark.read.PartClient}).
 */
package io.faro.spark.read;
