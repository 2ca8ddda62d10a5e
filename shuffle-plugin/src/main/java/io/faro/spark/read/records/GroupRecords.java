package io.faro.spark.read.records;

import io.faro.spark.read.groups.FetchedGroup;
import io.faro.spark.read.groups.PartFailure;
import java.io.IOException;
import java.io.InputStream;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.shuffle.FetchFailedException;

/** The records of a fetched group. */
final class GroupRecords implements RecordSource, PartsStream.Bytes {
  private final FetchedGroup fetched;
  private final Decompression decompression;
  private final PartFailure failure;

  GroupRecords(FetchedGroup fetched, Decompression decompression, PartFailure failure) {
    this.fetched = fetched;
    this.decompression = decompression;
    this.failure = failure;
  }

  /** Parts that did not arrive end the task before it has a record of the others. */
  @Override
  public InputStream open() throws FetchFailedException {
    for (int i = 0; i < fetched.count(); i++) {
      if (!fetched.hasBytes(i)) {
        throw fetched.withoutBytes(i);
      }
    }
    return new PartsStream(this, 0, fetched.count());
  }

  @Override
  public ManagedBuffer part(int i) {
    return fetched.part(i);
  }

  @Override
  public FetchFailedException unreadable(int i, IOException cause) {
    return failure.failed(fetched.group.address, fetched.group.parts, i, "its bytes cannot be read", cause);
  }

  @Override
  public boolean failed(Throwable problem, boolean decompressing, boolean handedOut)
      throws IOException, FetchFailedException {
    for (int i = 0; i < fetched.count(); i++) {
      Throwable found = decompressing && fetched.count() == 1 ? problem
          : fetched.look(i, part -> decompression.problem(PartsStream.open(part)));
      if (found != null) {
        fetched.corrupt(i, found.toString(), handedOut);
        return true;
      }
    }
    return false;
  }

  @Override
  public void close() throws IOException {
    fetched.close();
  }
}
