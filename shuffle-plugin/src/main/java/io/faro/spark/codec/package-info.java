/**
 * Decodes compressed streams with row blocks in plain Java (docs/design/row-block-format.md), for where native code
 * does not:
 * Spark's own reader, and executors without the native library. Nothing here knows what the streams are for.
 */
package io.faro.spark.codec;
