package io.faro.spark.write;

/** What the files of one map output share. */
final class WriteContext {
  final int partitions;
  final PartitionSums sums;
  private final Runnable endIfKilled;
  private long writeNanos;

  /** {@code endIfKilled} throws when the task was killed. */
  WriteContext(int partitions, PartitionSums sums, Runnable endIfKilled) {
    this.partitions = partitions;
    this.sums = sums;
    this.endIfKilled = endIfKilled;
  }

  /** Called before each write: a killed task ends here, however long its files are. */
  void beforeWrite() {
    endIfKilled.run();
  }

  /** A write, or a commit, took from {@code started}, of {@link System#nanoTime}, until now. */
  void wrote(long started) {
    writeNanos += System.nanoTime() - started;
  }

  /** The time of all writes so far. */
  long writeNanos() {
    return writeNanos;
  }
}
