package io.faro.spark;

/** Runs an action later, on a thread that it must not block. Tests have a clock of their own. */
interface Timer {
  void after(long millis, Runnable action);
}
