package io.faro.spark.rows;

import io.faro.rows.RowReader;
import java.io.IOException;
import java.util.NoSuchElementException;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.FetchFailedException;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;
import scala.Product2;
import scala.Tuple2;
import scala.collection.AbstractIterator;

/**
 * The rows of a reader: one {@link UnsafeRow} that points at one row of native memory after the other. A row is valid
 * until the next call of {@link #next}, the last one until the task ends, as with Spark's own reader.
 */
final class RowIterator<K, C> extends AbstractIterator<Product2<K, C>> {
  private static final int HEAD_BYTES = 8;

  /** Gives the inputs, one after the other; {@code null}: there are no more. */
  interface Inputs {
    Input next() throws IOException;
  }

  private final Inputs inputs;
  private final RowReader reader;
  private final TaskContext context;
  private final ShuffleReadMetricsReporter metrics;
  private final UnsafeRow row;
  /** The bytes of a row without values. */
  private final int leastBytes;
  private final Product2<K, C> pair;
  /** The head of the next row, and the end of the batch. */
  private long at;
  private long end;
  /** Rows of the batch; counted when the next one comes. */
  private int rowsInBatch;
  private Input input;
  private boolean fed;
  private Failure failure;
  private boolean ended;

  /** What {@link RowReader#next} said after rows that are to be read first. */
  private static final class Failure {
    final int part;
    final String problem;
    final boolean corrupt;
    final boolean handedOut;

    Failure(RowReader reader, boolean corrupt) {
      this.part = reader.part();
      this.problem = reader.problem();
      this.corrupt = corrupt;
      this.handedOut = reader.partWasHandedOut();
    }
  }

  @SuppressWarnings("unchecked")
  RowIterator(Inputs inputs, RowReader reader, int fields, TaskContext context, ShuffleReadMetricsReporter metrics) {
    this.inputs = inputs;
    this.reader = reader;
    this.context = context;
    this.metrics = metrics;
    row = new UnsafeRow(fields);
    leastBytes = UnsafeRow.calculateBitSetWidthInBytes(fields) + 8 * fields;
    // Spark's reader gives a key too, which is always 0.
    pair = (Product2<K, C>) new Tuple2<Object, Object>(0, row);
  }

  @Override
  public boolean hasNext() {
    return at < end || advance();
  }

  @Override
  public Product2<K, C> next() {
    if (at >= end && !advance()) {
      throw new NoSuchElementException("no more rows");
    }
    int bytes = Platform.getInt(null, at);
    long left = end - at - HEAD_BYTES;
    if (bytes < leastBytes || bytes > left) {
      throw new IllegalStateException("a row of " + bytes + " bytes, allowed: " + leastBytes + " for its "
          + row.numFields() + " columns to the " + left + " of the batch; other columns were written than are read, or "
          + "the task has ended");
    }
    row.pointTo(null, at + HEAD_BYTES, bytes);
    at += HEAD_BYTES + bytes;
    return pair;
  }

  /** Decodes until there is a row; false: there are no more. */
  private boolean advance() {
    if (ended) {
      return false;
    }
    countRows();
    try {
      do {
        context.killTaskIfInterrupted();
        if (failure != null) {
          Failure last = failure;
          failure = null;
          fed = false;
          input.failed(last.part, last.problem, last.corrupt, last.handedOut);
        }
        if (!prepare()) {
          ended = true;
          context.taskMetrics().mergeShuffleReadMetrics();
          return false;
        }
      } while (!decode());
      return true;
    } catch (IOException | FetchFailedException e) {
      throw Undeclared.raise(e);
    }
  }

  /** Gives the reader bytes if it has none; false: there are none left. */
  private boolean prepare() throws IOException, FetchFailedException {
    while (!fed) {
      if (input == null) {
        input = inputs.next();
        if (input == null) {
          return false;
        }
      }
      fed = input.feed(reader);
      if (!fed) {
        input.close();
        input = null;
      }
    }
    return true;
  }

  /** True: there is a row. */
  private boolean decode() throws IOException, FetchFailedException {
    RowReader.Step step = reader.next();
    input.read(reader.fileBytes());
    int rows = reader.rows();
    if (rows > 0) {
      at = reader.address();
      end = at + reader.bytes();
      rowsInBatch = rows;
    }
    switch (step) {
      case FULL:
        break;
      case DONE:
        fed = false;
        break;
      case UNRESOLVED:
        fed = input.resolve(reader.part());
        break;
      case CORRUPT:
        failure = new Failure(reader, true);
        break;
      case UNREADABLE:
        failure = new Failure(reader, false);
        break;
      default:
        throw new IllegalStateException("the task has ended");
    }
    return rows > 0;
  }

  private void countRows() {
    if (rowsInBatch > 0) {
      metrics.incRecordsRead(rowsInBatch);
      rowsInBatch = 0;
    }
  }

  /** The task has ended. */
  void close() throws IOException {
    ended = true;
    long left = 0;
    for (long head = at; head < end; head += HEAD_BYTES + Platform.getInt(null, head)) {
      left++;
    }
    at = end;
    if (rowsInBatch > left) {
      metrics.incRecordsRead(rowsInBatch - left);
    }
    rowsInBatch = 0;
    reader.close();
    if (input != null) {
      input.close();
      input = null;
    }
  }
}
