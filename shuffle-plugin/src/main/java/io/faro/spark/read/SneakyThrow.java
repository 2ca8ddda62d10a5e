package io.faro.spark.read;

/** Scala declares no exceptions: some methods of Spark throw checked ones, and overrides of them must too. */
final class SneakyThrow {
  private SneakyThrow() {}

  /** Throws {@code exception} as it is; the result is for the compiler: {@code throw SneakyThrow.raise(e)}. */
  static RuntimeException raise(Throwable exception) {
    throw SneakyThrow.<RuntimeException>as(exception);
  }

  @SuppressWarnings("unchecked")
  private static <E extends Throwable> E as(Throwable exception) throws E {
    throw (E) exception;
  }
}
