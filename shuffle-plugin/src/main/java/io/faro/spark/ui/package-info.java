/** The tab Faro of the Spark UI: the driver collects reports and shows them; the history server shows them again. */
package io.faro.spark.ui;
