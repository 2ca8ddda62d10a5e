/** Collectives for Spark's barrier stages. */
package io.faro.spark.collective;
