/**
 * The native endpoint as the fetch sees it, and the memory of blocks that arrived. Tests put another transport in its
 * place.
 */
package io.faro.spark.transport;
