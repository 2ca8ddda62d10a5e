package io.faro.spark.read.groups;

import io.faro.Nullable;
import io.faro.spark.read.places.Parts;
import java.io.IOException;
import java.io.InputStream;
import java.util.zip.Checksum;
import org.apache.spark.shuffle.FetchFailedException;
import org.apache.spark.storage.BlockManagerId;

/** A part that Spark hands over as the stream of a file. It can be read once; its checksum is made on the way. */
public final class StreamPart {
  private final InputStream stream;
  private final BlockManagerId address;
  private final Parts part;
  private final PartFailure failure;
  /** The checksum of the bytes that were read; null if the part has none. */
  @Nullable private final Checksum sum;

  public StreamPart(InputStream stream, BlockManagerId address, Parts part, PartFailure failure) {
    this.stream = stream;
    this.address = address;
    this.part = part;
    this.failure = failure;
    sum = failure.running(part, 0);
  }

  /** Reads like {@link InputStream#read(byte[], int, int)}. */
  public int read(byte[] to, int offset, int length) throws IOException {
    int bytes = stream.read(to, offset, length);
    if (sum != null && bytes > 0) {
      sum.update(to, offset, bytes);
    }
    return bytes;
  }

  public int available() throws IOException {
    return stream.available();
  }

  /** Returns the failure with which the task ends because the file cannot be read. */
  public FetchFailedException unreadable(Throwable cause) {
    return failure.failed(address, part, 0, "its file cannot be read", cause);
  }

  /** What the task ends with because the part is corrupt. Reads the rest, as the checksum is of all bytes. */
  public FetchFailedException corrupt(String problem, byte[] scratch) throws IOException {
    while (read(scratch, 0, scratch.length) >= 0) {
      // The checksum sums up what is read.
    }
    return failure.corrupt(address, part, 0, problem, sum == null ? null : (Long) sum.getValue());
  }

  public void close() throws IOException {
    stream.close();
  }
}
