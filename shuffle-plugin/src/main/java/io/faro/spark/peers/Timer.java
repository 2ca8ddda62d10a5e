package io.faro.spark.peers;

/** Runs an action later, on a thread that it must not block. Tests have a clock of their own. */
public interface Timer {
  void after(long millis, Runnable action);
}
