package io.faro.spark.read.rows;

import io.faro.Endpoint;
import io.faro.Nullable;
import io.faro.rows.RowReader;
import io.faro.spark.read.groups.PartFailure;
import io.faro.spark.read.groups.StreamPart;
import io.faro.spark.read.places.LocalFiles;
import io.faro.spark.read.places.Parts;
import java.io.IOException;
import java.io.InputStream;
import org.apache.spark.TaskKilledException;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.shuffle.FetchFailedException;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;

/** The rows of parts in files of this host, read by native code; its own are open for others anyway. */
public final class FileRows implements RowSource {
  /** Parts that native code gets at once. */
  private static final int MAX_PARTS = 1024;

  private final Parts parts;
  private final Endpoint endpoint;
  private final LocalFiles files;
  private final PartFailure failure;
  private final ShuffleReadMetricsReporter metrics;
  private final StreamRows.Chunk chunk;
  /** The first part that was not given to the reader. */
  private int next;
  private int first;
  /** The first part that was not counted. */
  private int counted;
  /** The part that was resolved last; -1: none. */
  private int resolved = -1;
  /** How often it was. */
  private int tries;
  /** A part that Spark reads, because native code could not; null if there is none. */
  @Nullable private StreamRows bySpark;

  public FileRows(Parts parts, Endpoint endpoint, LocalFiles files, PartFailure failure,
      ShuffleReadMetricsReporter metrics, StreamRows.Chunk chunk) {
    this.parts = parts;
    this.endpoint = endpoint;
    this.files = files;
    this.failure = failure;
    this.metrics = metrics;
    this.chunk = chunk;
  }

  @Override
  public boolean feed(RowReader reader) throws IOException, FetchFailedException {
    if (bySpark != null) {
      if (bySpark.feed(reader)) {
        return true;
      }
      bySpark.close();
      bySpark = null;
    }
    count(next);
    if (next == parts.count()) {
      return false;
    }
    first = next;
    int count = Math.min(MAX_PARTS, parts.count() - first);
    next += count;
    reader.input(endpoint, parts.ids, first, count);
    return true;
  }

  @Override
  public void read(long fileBytes) {
    files.count(metrics, 0, fileBytes);
  }

  /** Counts the parts before {@code end}. */
  private void count(int end) {
    files.count(metrics, end - counted, 0);
    counted = end;
  }

  @Override
  public boolean resolve(int part) throws IOException, FetchFailedException {
    int at = first + part;
    // Asked again, the endpoint has not taken the files, or has closed them already.
    tries = at == resolved ? tries + 1 : 1;
    resolved = at;
    boolean found = tries <= files.tries() && find(at);
    if (!found) {
      failed(part, "its files are not there, or do not fit each other", false, false);
    }
    return found;
  }

  private boolean find(int at) throws FetchFailedException {
    try {
      return files.resolve(parts, at);
    } catch (RuntimeException e) {
      // The task was killed, for example.
      throw e;
    } catch (Exception e) {
      throw failure.failed(files.address(), parts, at, "its files cannot be looked up", e);
    }
  }

  @Override
  public void failed(int part, String problem, boolean corrupt, boolean handedOut)
      throws IOException, FetchFailedException {
    if (bySpark != null) {
      bySpark.failed(part, problem, corrupt, handedOut);
      return;
    }
    int at = first + part;
    count(at);
    next = at + 1;
    if (!handedOut && files.leave(parts, at, problem, corrupt)) {
      counted = next;
      return;
    }
    ManagedBuffer bytes = bySpark(at, problem);
    if (corrupt) {
      throw failure.corrupt(files.address(), parts, at, problem, bytes);
    } else if (handedOut) {
      throw failure.failed(files.address(), parts, at, problem, null);
    }
    files.count(metrics, 0, bytes.size());
    InputStream stream = bytes.createInputStream();
    bySpark = new StreamRows(new StreamPart(stream, files.address(), parts.only(at), failure), chunk);
  }

  private ManagedBuffer bySpark(int at, String problem) throws FetchFailedException {
    try {
      return files.bySpark(parts, at);
    } catch (TaskKilledException e) {
      throw e;
    } catch (Exception e) {
      throw failure.failed(files.address(), parts, at, problem, e);
    }
  }

  @Override
  public void close() throws IOException {
    if (bySpark != null) {
      bySpark.close();
    }
  }
}
