package io.faro.spark;

/** Runs something later, on a thread that must not be held up. Tests put a clock of their own here. */
interface Timer {
  void after(long millis, Runnable action);
}
