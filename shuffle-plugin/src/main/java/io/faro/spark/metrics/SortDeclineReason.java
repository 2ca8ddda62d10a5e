package io.faro.spark.metrics;

/** Reason why Spark's own sort sorts rows behind a shuffle. Each has the name of its counter. */
public enum SortDeclineReason {
  EXPRESSION("expression", true, "their order begins with an expression"),
  TYPE("type", true, "their order begins with a column of a type that Faro does not compare"),
  EXECUTORS("executors", true, "Faro had not started in all executors when their query was planned"),
  MEMORY("memory", false, "the task had hardly memory"),
  NO_LIBRARY("noLibrary", false, "the native library cannot be loaded"),
  FAULT("fault", false, "native code refused the rows, which is a defect: see the executor's log");

  public final String key;
  public final String text;
  /** The driver counts sorts of plans; otherwise executors count partitions. */
  final boolean isDrivers;

  SortDeclineReason(String key, boolean isDrivers, String text) {
    this.key = key;
    this.isDrivers = isDrivers;
    this.text = text;
  }

  public String counter() {
    return "sparkSorts." + key;
  }

  /** What is counted, for a sentence. */
  public String unit() {
    return isDrivers ? "sorts" : "partitions";
  }
}
