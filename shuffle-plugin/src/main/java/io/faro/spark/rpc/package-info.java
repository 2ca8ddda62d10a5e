/** Messages of Faro in Spark's RPC, as bytes: a type that every class loader has. */
package io.faro.spark.rpc;
