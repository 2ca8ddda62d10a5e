package io.faro.spark.read.records;

import io.faro.spark.read.groups.StreamPart;
import io.faro.spark.read.places.ArrayStream;
import java.io.IOException;
import java.io.InputStream;
import org.apache.spark.shuffle.FetchFailedException;

/** The records of a part that Spark's iterator hands over as the stream of a file. */
public final class StreamRecords implements RecordSource {
  private static final int CHUNK_BYTES = 8 << 10;

  private final StreamPart part;

  public StreamRecords(StreamPart part) {
    this.part = part;
  }

  /** Its close leaves the part open: the rest is read after a failure. */
  @Override
  public InputStream open() {
    return new ArrayStream() {
      @Override
      public int read(byte[] to, int offset, int length) throws IOException {
        return part.read(to, offset, length);
      }

      @Override
      public int available() throws IOException {
        return part.available();
      }
    };
  }

  @Override
  public boolean failed(Throwable problem, boolean decompressing, boolean handedOut) throws FetchFailedException {
    if (!decompressing) {
      return false;
    }
    FetchFailedException corrupt;
    try {
      corrupt = part.corrupt(problem.toString(), new byte[CHUNK_BYTES]);
    } catch (IOException e) {
      throw part.unreadable(problem);
    }
    throw corrupt;
  }

  @Override
  public void close() throws IOException {
    part.close();
  }
}
