/**
 * The block client behind the fetch iterators: one call for each request, what becomes of its blocks, and which of them
 * the fetch of Spark delivers instead.
 */
package io.faro.spark.fetch;
