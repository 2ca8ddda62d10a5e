/** Readers of Spark SQL's rows: native code decodes the bytes of a part where they lie. */
package io.faro.spark.read.rows;
