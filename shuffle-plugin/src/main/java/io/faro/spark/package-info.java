/**
 * Entrances and start: the classes that a user names in a setting, those that Spark calls, and what a process is made
 * of. This package uses all others; only {@link io.faro.spark.collective} uses it.
 */
package io.faro.spark;
