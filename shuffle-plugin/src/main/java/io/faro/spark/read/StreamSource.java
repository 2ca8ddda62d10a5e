package io.faro.spark.read;

import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.zip.CheckedInputStream;
import java.util.zip.Checksum;
import org.apache.spark.shuffle.FetchFailedException;
import org.apache.spark.storage.BlockManagerId;

/** A block that Spark's iterator hands over as the stream of a file. It can be read once. */
final class StreamSource implements Source {
  private static final int CHUNK_BYTES = 8 << 10;

  private final InputStream stream;
  private final BlockManagerId address;
  private final Parts part;
  private final PartFailure failure;
  /** Of the bytes that were read; {@code null}: the part has none. */
  private final Checksum sum;

  StreamSource(InputStream stream, BlockManagerId address, Parts part, PartFailure failure) {
    sum = failure.running(part, 0);
    this.stream = sum == null ? stream : new CheckedInputStream(stream, sum);
    this.address = address;
    this.part = part;
    this.failure = failure;
  }

  @Override
  public InputStream open() {
    return new FilterInputStream(stream) {
      /** The rest is read after a failure. */
      @Override
      public void close() {}
    };
  }

  @Override
  public boolean failed(Throwable problem, boolean decompressing, boolean handedOut) throws FetchFailedException {
    if (!decompressing) {
      return false;
    }
    byte[] rest = new byte[CHUNK_BYTES];
    try {
      while (stream.read(rest) >= 0) {
        // The checksum is of all bytes.
      }
    } catch (IOException e) {
      throw failure.failed(address, part, 0, "its file cannot be read", problem);
    }
    throw failure.corrupt(address, part, 0, problem.toString(), sum == null ? null : (Long) sum.getValue());
  }

  @Override
  public void close() throws IOException {
    stream.close();
  }
}
