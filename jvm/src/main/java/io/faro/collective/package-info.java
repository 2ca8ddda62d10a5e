/**
 * All-reduce of float arrays between the members of a team, over the endpoints of their processes; no Spark in it.
 *
 * <p>Each member takes a {@link io.faro.collective.Seat}, tells the others its invitation by whatever way they have,
 * and joins with everybody's. What it gets is a {@link io.faro.collective.GroupedAllReduce}.
 */
package io.faro.collective;
