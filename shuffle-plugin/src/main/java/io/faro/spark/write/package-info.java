/** Faro's writer of Spark SQL's rows: the files are Spark's, in format and place. */
package io.faro.spark.write;
