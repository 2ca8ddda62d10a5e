package io.faro.spark.read;

/** Spark's code is Scala, which declares no exceptions: some of its methods throw checked ones, and so must overrides. */
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
