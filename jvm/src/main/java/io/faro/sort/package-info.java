/** Sorts rows of Spark SQL by their keys: native code makes numbers of the keys, and sorts those. */
package io.faro.sort;
