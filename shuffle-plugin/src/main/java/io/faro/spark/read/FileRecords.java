package io.faro.spark.read;

import java.io.IOException;
import java.io.InputStream;
import org.apache.spark.TaskKilledException;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.shuffle.FetchFailedException;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;

/**
 * The records of parts in files of this host. Native code reads small ones, Spark's code large ones and those that
 * fail.
 */
final class FileRecords implements RecordSource, PartsStream.Bytes {
  private final Parts parts;
  private final int first;
  private final int end;
  private final LocalFiles files;
  private final FileChunk chunk;
  private final Decompression decompression;
  private final PartFailure failure;
  private final ShuffleReadMetricsReporter metrics;
  /** The first part that was not counted. */
  private int counted;
  /** From {@code first} on: parts that came by another way. {@code null}: none did. */
  private ManagedBuffer[] replaced;

  /** Parts {@code first} to {@code end}, exclusive; {@code chunk} is {@code null}: Spark's code reads all of them. */
  FileRecords(Parts parts, int first, int end, LocalFiles files, FileChunk chunk, Decompression decompression,
      PartFailure failure, ShuffleReadMetricsReporter metrics) {
    this.parts = parts;
    this.first = first;
    this.end = end;
    this.files = files;
    this.chunk = chunk;
    this.decompression = decompression;
    this.failure = failure;
    this.metrics = metrics;
    counted = first;
  }

  @Override
  public InputStream open() {
    return new PartsStream(this, first, end);
  }

  @Override
  public ManagedBuffer part(int i) throws FetchFailedException {
    if (replaced != null && replaced[i - first] != null) {
      return replaced[i - first];
    }
    ManagedBuffer bytes;
    try {
      bytes = chunk == null ? null : chunk.part(parts, i, end, files);
      if (bytes == null) {
        bytes = files.bySpark(parts, i);
      }
    } catch (TaskKilledException e) {
      throw e;
    } catch (Exception e) {
      throw failure.failed(files.address(), parts, i, "its files cannot be found or read", e);
    }
    if (bytes.size() == 0) {
      throw failure.failed(files.address(), parts, i, "its file has no bytes of it", null);
    }
    if (i == counted) {
      counted++;
      if (bytes instanceof FetchedPart) {
        ((FetchedPart) bytes).count(metrics);
      } else {
        files.count(metrics, 1, bytes.size());
      }
    }
    return bytes;
  }

  @Override
  public FetchFailedException unreadable(int i, IOException cause) {
    return failure.failed(files.address(), parts, i, "its file cannot be read", cause);
  }

  /** A file does not become better when it is read again, but there may be another way to what was written. */
  @Override
  public boolean failed(Throwable problem, boolean decompressing, boolean handedOut)
      throws IOException, FetchFailedException {
    for (int i = first; i < end; i++) {
      ManagedBuffer bytes = part(i);
      Throwable found = decompressing && end - first == 1
          ? problem : decompression.problem(PartsStream.open(bytes));
      if (found != null) {
        if (handedOut || bytes instanceof FetchedPart || !files.hasOtherWay()) {
          throw failure.corrupt(files.address(), parts, i, found.toString(), bytes);
        }
        replace(i, found.toString());
        return true;
      }
    }
    return false;
  }

  private void replace(int i, String problem) throws FetchFailedException {
    if (replaced == null) {
      replaced = new ManagedBuffer[end - first];
    }
    try {
      replaced[i - first] = files.otherWay(parts, i, problem, true);
    } catch (IOException e) {
      throw failure.failed(files.address(), parts, i, "corrupt, and not fetched once more", e.getCause());
    }
  }

  @Override
  public void close() {}
}
