package io.faro;

/** Makes the failures that only native code can report. */
public final class Failures {
  public static final int UNREACHABLE = 1;
  public static final int CONNECTION_LOST = 2;
  public static final int CORRUPT = 4;
  public static final int POOL_EXHAUSTED = 5;
  public static final int CANCELLED = 9;
  public static final int CODES = 9;

  private Failures() {}

  public static FetchException of(int code, int first, int count) {
    return FetchException.of(code, new FetchException.Failed(7, 1, first, count, "made by a test"));
  }
}
