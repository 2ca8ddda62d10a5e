package io.faro.spark.metrics;

/** Reason that a shuffle is read by Spark's own reader. Each has the name of its counter. */
public enum ReaderDeclineReason {
  SETTING("setting", "spark.faro.reader is spark"),
  SERIALIZER("serializer", "its serializer's objects cannot be moved within a stream"),
  ENCRYPTION("encryption", "spark.io.encryption.enabled is true"),
  CODEC("codec", "streams of its codec (spark.io.compression.codec) cannot be joined"),
  OLD_PROTOCOL("oldProtocol", "spark.shuffle.useOldFetchProtocol is true"),
  PUSH_MERGED("pushMerged", "its blocks were merged by push-based shuffle"),
  NO_ACCESS("noAccess", "this Spark does not have what Faro's reader needs");

  public final String key;
  public final String text;

  ReaderDeclineReason(String key, String text) {
    this.key = key;
    this.text = text;
  }
}
