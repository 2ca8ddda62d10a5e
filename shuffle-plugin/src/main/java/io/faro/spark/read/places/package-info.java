/** Where the parts of a reader are: which executor has them, and which files of this host. */
package io.faro.spark.read.places;
