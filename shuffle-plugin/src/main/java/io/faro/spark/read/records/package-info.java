/** Readers of records: the shuffle's serializer deserialises some parts as one stream. */
package io.faro.spark.read.records;
