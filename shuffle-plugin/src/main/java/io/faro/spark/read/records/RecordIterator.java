package io.faro.spark.read.records;

import io.faro.Nullable;
import io.faro.spark.read.groups.PartFailure;
import io.faro.spark.read.records.Decompression.GuardedStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.NoSuchElementException;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskKilledException;
import org.apache.spark.serializer.SerializerInstance;
import org.apache.spark.shuffle.FetchFailedException;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.xerial.snappy.SnappyError;
import scala.Tuple2;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/**
 * The records of a reader, deserialised by the shuffle's serializer from one stream for each {@link RecordSource}.
 * After an exception the source examines its parts: a corrupt part is a fetch failure, and without one the task gets
 * the exception itself.
 */
final class RecordIterator extends AbstractIterator<Tuple2<Object, Object>> {
  /** Gives the sources, one after the other, and null after the last. */
  interface Sources {
    @Nullable RecordSource next() throws IOException;
  }

  /** Null if all records were read. */
  @Nullable private Sources sources;
  private final SerializerInstance serializer;
  private final Decompression decompression;
  private final TaskContext context;
  private final ShuffleReadMetricsReporter metrics;
  private final Runnable onEnd;
  /** Null if the next one comes when a record is asked for. */
  @Nullable private volatile RecordSource source;
  /** Null with its records: the source is to be opened. */
  @Nullable private volatile GuardedStream stream;
  private Iterator<Tuple2<Object, Object>> records;
  /** True once the task has a record of this source. */
  private boolean handedOut;
  private boolean ended;
  /** The failure that ended the reading; null if there is none. Later calls throw it again and do not report an end. */
  @Nullable private Throwable broken;
  private volatile boolean closed;

  /** {@code onEnd} runs when the last record was read. */
  RecordIterator(Sources sources, SerializerInstance serializer, Decompression decompression, TaskContext context,
      ShuffleReadMetricsReporter metrics, Runnable onEnd) {
    this.sources = sources;
    this.serializer = serializer;
    this.decompression = decompression;
    this.context = context;
    this.metrics = metrics;
    this.onEnd = onEnd;
  }

  @Override
  public boolean hasNext() {
    while (!ended) {
      if (broken != null) {
        throw PartFailure.raise(broken);
      }
      try {
        if (records == null && !open()) {
          ended = true;
          sources = null;
          context.taskMetrics().mergeShuffleReadMetrics();
          onEnd.run();
          break;
        }
        if (records.hasNext()) {
          return true;
        }
        if (stream.problem() != null) {
          // The deserialiser has taken it for the end.
          throw stream.problem();
        }
        closeStream();
        source.close();
        source = null;
      } catch (Throwable e) {
        recover(e);
      }
    }
    return false;
  }

  @Override
  public Tuple2<Object, Object> next() {
    while (hasNext()) {
      Tuple2<Object, Object> record;
      try {
        record = records.next();
      } catch (Throwable e) {
        recover(e);
        continue;
      }
      handedOut = true;
      metrics.incRecordsRead(1);
      return record;
    }
    throw new NoSuchElementException("no more records");
  }

  /** Opens the source, after a problem once more. False: there are no more. */
  private boolean open() throws IOException, FetchFailedException {
    InputStream bytes = null;
    while (bytes == null) {
      if (source == null) {
        context.killTaskIfInterrupted();
        source = sources.next();
        if (source == null) {
          return false;
        }
        handedOut = false;
      }
      bytes = source.open();
      if (bytes == null) {
        source.close();
        source = null;
      }
    }
    stream = new GuardedStream(bytes, decompression);
    records = serializer.deserializeStream(stream).asKeyValueIterator();
    if (closed) {
      throw new IllegalStateException("the task has ended");
    }
    return true;
  }

  /** Returns if the source is to be read anew; otherwise it throws what the task ends with. */
  private void recover(Throwable thrown) {
    Throwable decompressor = stream == null ? null : stream.problem();
    Throwable problem = decompressor == null ? thrown : decompressor;
    try {
      if (source == null || closed) {
        throw thrown;
      } else if (problem instanceof FetchFailedException || problem instanceof TaskKilledException
          || problem instanceof Error && !(problem instanceof SnappyError)) {
        throw problem;
      }
      context.killTaskIfInterrupted();
      closeStream();
      if (!source.failed(problem, decompressor != null, handedOut)) {
        throw thrown;
      }
    } catch (Throwable e) {
      broken = e;
      throw PartFailure.raise(e);
    }
  }

  private void closeStream() throws IOException {
    records = null;
    if (stream != null) {
      GuardedStream last = stream;
      stream = null;
      last.close();
    }
  }

  /** The task has ended. From any thread. */
  void close() throws IOException {
    closed = true;
    GuardedStream lastStream = stream;
    RecordSource lastSource = source;
    try {
      if (lastStream != null) {
        lastStream.close();
      }
    } finally {
      if (lastSource != null) {
        lastSource.close();
      }
    }
  }
}
