package io.faro;

/** Makes the failures that only native code can report. */
public final class Failures {
  private Failures() {}

  public static FetchException of(FetchError error, int first, int count) {
    return new FetchException(error, 7, 1, first, count, "made by a test");
  }
}
