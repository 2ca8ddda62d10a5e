/** Spark's own settings, as Spark reads them, and their notices. Nothing here knows what the settings are for. */
package io.faro.spark.settings;
