package io.faro.spark.rows;

import java.io.IOException;
import java.io.InputStream;
import org.apache.spark.shuffle.FetchFailedException;
import org.apache.spark.storage.BlockManagerId;

/** A block that Spark's iterator hands over as the stream of a file. It can be read once. */
final class StreamSource implements Source {
  private final InputStream stream;
  private final BlockManagerId address;
  private final Parts part;
  private final PartFailure failure;

  StreamSource(InputStream stream, BlockManagerId address, Parts part, PartFailure failure) {
    this.stream = stream;
    this.address = address;
    this.part = part;
    this.failure = failure;
  }

  @Override
  public InputStream open() {
    return stream;
  }

  @Override
  public boolean failed(Throwable problem, boolean decompressing, boolean handedOut) throws FetchFailedException {
    if (decompressing) {
      throw failure.failed(address, part, 0, "its file cannot be read, or is corrupt: " + problem, problem);
    }
    return false;
  }

  @Override
  public void close() throws IOException {
    stream.close();
  }
}
