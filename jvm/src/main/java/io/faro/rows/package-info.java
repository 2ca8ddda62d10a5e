/**
 * Row readers and compressors: native code decodes shuffle blocks of Spark SQL into batches, which the caller reads
 * with {@code Unsafe}, and compresses rows to blocks.
 */
package io.faro.rows;
