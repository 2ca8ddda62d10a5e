package io.faro.spark.read.records;

import io.faro.Endpoint;
import io.faro.Nullable;
import io.faro.rows.FileParts;
import io.faro.spark.read.groups.PartFailure;
import io.faro.spark.read.places.LocalFiles;
import io.faro.spark.read.places.Parts;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.BitSet;
import org.apache.spark.TaskKilledException;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.buffer.NioManagedBuffer;
import org.apache.spark.shuffle.FetchFailedException;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.storage.BlockManagerId;

/**
 * The records of parts in files of this host. Native code reads small ones, Spark's code large ones and those that
 * fail.
 */
final class FileRecords implements RecordSource, PartsStream.Bytes {
  /** Fetches a part over the network, and waits for it. */
  interface Network {
    RecordSource fetch(BlockManagerId address, Parts part);
  }

  private final Parts parts;
  private final int first;
  private final int end;
  private final LocalFiles files;
  private final FileChunk chunk;
  private final Decompression decompression;
  private final PartFailure failure;
  private final Network network;
  private final ShuffleReadMetricsReporter metrics;
  /** The first part that was not counted. */
  private int counted;
  /** Parts that were left to be fetched over the network, and are no longer among these. */
  private final BitSet left = new BitSet();
  /** Parts whose files were lost while they were read, and that were fetched to their end. */
  private final BitSet replaced = new BitSet();
  /** The source that was fetched for the last one of these parts; null if none was fetched. */
  @Nullable private volatile RecordSource replacement;

  /** Parts {@code first} to {@code end}, exclusive; {@code chunk} is null if Spark's code reads all of them. */
  FileRecords(Parts parts, int first, int end, LocalFiles files, FileChunk chunk, Decompression decompression,
      PartFailure failure, Network network, ShuffleReadMetricsReporter metrics) {
    this.parts = parts;
    this.first = first;
    this.end = end;
    this.files = files;
    this.chunk = chunk;
    this.decompression = decompression;
    this.failure = failure;
    this.network = network;
    this.metrics = metrics;
    counted = first;
  }

  @Override
  public InputStream open() throws IOException {
    PartsStream stream = new PartsStream(this, first, end);
    return stream.hasBytes() ? stream : null;
  }

  @Override
  public ManagedBuffer part(int i) throws FetchFailedException {
    if (left.get(i)) {
      return null;
    }
    ManagedBuffer bytes;
    try {
      bytes = chunk == null ? null : chunk.part(parts, i, end, files);
      if (bytes == null) {
        bytes = files.bySpark(parts, i);
      }
      if (bytes.size() == 0) {
        throw new IOException("its file has no bytes of it");
      }
    } catch (TaskKilledException e) {
      throw e;
    } catch (Exception e) {
      if (leave(i, e.toString(), false)) {
        return null;
      }
      throw failure.failed(files.address(), parts, i, "its files cannot be found or read", e);
    }
    if (i == counted) {
      counted++;
      files.count(metrics, 1, bytes.size());
    }
    return bytes;
  }

  /** False: there is no other way to the part than these files. */
  private boolean leave(int i, String problem, boolean corrupt) {
    boolean leaves = files.leave(parts, i, problem, corrupt);
    left.set(i, leaves);
    if (leaves && i == counted) {
      counted++;
    }
    return leaves;
  }

  /**
   * Fetches a part whose lent file is not there any more, so that the stream goes on with the byte that it needs. The
   * decompressor and the task have the bytes before it. Once: what was fetched is not fetched again.
   */
  @Override
  public InputStream instead(int i, IOException cause) throws IOException, FetchFailedException {
    if (replaced.get(i) || !files.lost(parts, i, cause.toString())) {
      throw unreadable(i, cause);
    }
    replaced.set(i);
    close();
    RecordSource fetched = network.fetch(files.address(), parts.only(i));
    replacement = fetched;
    InputStream bytes = fetched == null ? null : fetched.open();
    if (bytes == null) {
      throw unreadable(i, cause);
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
    int leftBefore = left.cardinality();
    for (int i = first; i < end; i++) {
      if (replaced.get(i)) {
        replacedFailed(i, problem, decompressing, handedOut);
        continue;
      }
      ManagedBuffer bytes = part(i);
      if (bytes == null) {
        continue;
      }
      Throwable found = decompressing && end - first == 1
          ? problem : decompression.problem(PartsStream.open(bytes));
      if (found != null) {
        if (handedOut || !leave(i, found.toString(), true)) {
          throw failure.corrupt(files.address(), parts, i, found.toString(), bytes);
        }
        return true;
      }
    }
    return !handedOut && left.cardinality() > leftBefore;
  }

  /** A part of the stream that could not be read was fetched. Throws if it is corrupt and must not be read again. */
  private void replacedFailed(int i, Throwable problem, boolean decompressing, boolean handedOut)
      throws IOException, FetchFailedException {
    if (!handedOut) {
      replaced.clear(i);
      leave(i, problem.toString(), false);
    } else if (i == replaced.length() - 1 && replacement != null) {
      replacement.failed(problem, decompressing && end - first == 1, true);
    }
  }

  /** Releases what was fetched. */
  @Override
  public void close() throws IOException {
    RecordSource last = replacement;
    if (last != null) {
      last.close();
    }
  }

  /**
   * Small parts in files of this host, read by native code many at a time: the files are open for peers anyway, and
   * Spark opens two for each part. One for each task.
   */
  static final class FileChunk {
    private static final int BYTES = 64 << 10;

    private final Endpoint endpoint;
    private final FileParts read = new FileParts(BYTES);
    /** The parts whose bytes are here: {@code count} of {@code parts} from {@code first} on. Null if none are. */
    @Nullable private Parts parts;
    private int first;
    private int count;
    /** The part that was asked for last, and where its bytes start. */
    private int at;
    private int start;

    FileChunk(Endpoint endpoint) {
      this.endpoint = endpoint;
    }

    /**
     * The bytes of part {@code i}, valid until the next call; null if Spark's code has to read it. Parts are
     * asked for in their order, up to {@code end}.
     */
    @Nullable ManagedBuffer part(Parts of, int i, int end, LocalFiles files) throws Exception {
      if (of == parts && i > at && i < first + count) {
        while (at < i) {
          start += read.length(at - first);
          at++;
        }
      } else if (of.size(i) > BYTES || !fill(of, i, end, files)) {
        return null;
      }
      return new NioManagedBuffer(ByteBuffer.wrap(read.bytes(), start, read.length(at - first)));
    }

    /** False: the first part cannot be read here. */
    private boolean fill(Parts of, int i, int end, LocalFiles files) throws Exception {
      parts = null;
      count = read.read(endpoint, of.ids, i, end);
      if (count == 0) {
        if (!files.resolve(of, i)) {
          return false;
        }
        count = read.read(endpoint, of.ids, i, end);
      }
      parts = count == 0 ? null : of;
      first = i;
      at = i;
      start = 0;
      return count > 0;
    }
  }
}
