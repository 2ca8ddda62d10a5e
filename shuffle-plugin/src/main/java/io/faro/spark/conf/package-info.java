/**
 * Settings: the keys of Faro, what they become for one process, and what Faro reads of Spark's settings. Each value is
 * checked here, and a bad one is named with the values that are allowed.
 */
package io.faro.spark.conf;
