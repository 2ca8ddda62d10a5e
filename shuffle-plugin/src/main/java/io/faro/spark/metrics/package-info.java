/**
 * Counters of an executor, the reasons that are counted, and the report that takes them to the driver. The data path
 * uses this package; it uses nothing of the plug-in, and no page.
 */
package io.faro.spark.metrics;
