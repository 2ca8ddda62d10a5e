package io.faro.spark.read;

import java.io.IOException;
import java.io.InputStream;

/**
 * Decompressed bytes on their way to a deserialiser. It keeps what the decompressor threw: deserialisers take an
 * EOFException for the end of their stream, and wrap others. Thread-safe, so that a task's end may close a stream that
 * another thread reads.
 */
final class GuardedStream extends ArrayStream {
  private final InputStream compressed;
  private final Decompression decompression;
  /** {@code null} before the first read: making it may read already, and fail. */
  private InputStream in;
  private Throwable problem;
  private boolean closed;

  GuardedStream(InputStream compressed, Decompression decompression) {
    this.compressed = compressed;
    this.decompression = decompression;
  }

  /** Returns the decompressor's exception, or {@code null}. */
  synchronized Throwable problem() {
    return problem;
  }

  @Override
  public synchronized int read(byte[] to, int offset, int length) throws IOException {
    if (closed) {
      throw new IOException("the stream was closed, or its task has ended");
    }
    try {
      if (in == null) {
        in = decompression.of(compressed);
      }
      return in.read(to, offset, length);
    } catch (Throwable e) {
      problem = e;
      throw e;
    }
  }

  @Override
  public synchronized int available() throws IOException {
    return closed || in == null ? 0 : in.available();
  }

  @Override
  public synchronized void close() throws IOException {
    if (!closed) {
      closed = true;
      (in == null ? compressed : in).close();
    }
  }
}
