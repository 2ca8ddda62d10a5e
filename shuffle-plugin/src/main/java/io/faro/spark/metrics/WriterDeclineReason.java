package io.faro.spark.metrics;

/** Reason why a shuffle is written by Spark's own writer. Each has the name of its counter. */
public enum WriterDeclineReason {
  SETTING("setting", "spark.faro.writer is spark"),
  SERIALIZER("serializer", "its serializer is not Spark SQL's"),
  AGGREGATION("aggregation", "it combines or sorts while writing"),
  ENCRYPTION("encryption", "spark.io.encryption.enabled is true"),
  CODEC("codec", "its codec (spark.io.compression.codec) is not lz4 or zstd"),
  CHECKSUM("checksum", "its checksums (spark.shuffle.checksum.algorithm) are not known here"),
  PARTITIONS("partitions", "it has too many partitions for a buffer of each"),
  NO_ACCESS("noAccess", "this Spark does not have what Faro's writer needs");

  public final String key;
  public final String text;

  WriterDeclineReason(String key, String text) {
    this.key = key;
    this.text = text;
  }
}
