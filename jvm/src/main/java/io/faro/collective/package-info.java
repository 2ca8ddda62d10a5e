/**
 * All-reduce of float arrays between the members of a team, over the endpoints of their processes. It does not use
 * Spark.
 *
 * <p>Each process makes a {@link io.faro.collective.Member}, sends its bootstrap id to the others, and joins with the
 * ids of all; the result is a {@link io.faro.collective.GroupedAllReduce}.
 */
package io.faro.collective;
