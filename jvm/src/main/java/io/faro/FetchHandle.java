package io.faro;

/** A fetch under way. */
public final class FetchHandle {
  final long request = 0;

  FetchHandle() {}

  /** Number of the request, as in logs and errors. */
  public long request() {
    return request;
  }

  /** Gives the fetch up; {@link FetchException.Cancelled} follows for blocks not yet reported. Idempotent. */
  public void cancel() {
    throw new UnsupportedOperationException();
  }

  /** Whether {@link FetchListener#onComplete} has been called, or is about to return. */
  public boolean isDone() {
    throw new UnsupportedOperationException();
  }
}
