/**
 * Rows in native memory: native code decodes shuffle blocks of Spark SQL into batches, which the caller walks with
 * {@code Unsafe}.
 */
package io.faro.rows;
