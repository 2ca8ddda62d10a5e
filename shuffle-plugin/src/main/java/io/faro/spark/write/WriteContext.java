package io.faro.spark.write;

/** State that the files of one map output share. */
final class WriteContext {
  final int partitions;
  final PartitionSums sums;
  /** True if a file is forced to the disk when it is whole. */
  final boolean sync;
  private final Runnable endIfKilled;
  private long writeNanos;

  /** {@code endIfKilled} throws when the task was killed. */
  WriteContext(int partitions, PartitionSums sums, boolean sync, Runnable endIfKilled) {
    this.partitions = partitions;
    this.sums = sums;
    this.sync = sync;
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

  long writeNanos() {
    return writeNanos;
  }
}
