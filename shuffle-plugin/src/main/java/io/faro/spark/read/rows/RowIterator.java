package io.faro.spark.read.rows;

import io.faro.Nullable;
import io.faro.spark.read.groups.PartFailure;
import io.faro.rows.RowReader;
import java.io.IOException;
import java.util.Arrays;
import java.util.NoSuchElementException;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.FetchFailedException;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Product2;
import scala.Tuple2;
import scala.collection.AbstractIterator;

/**
 * The rows of a reader: one {@link UnsafeRow} that points at one row of a batch after the other. Batches lie in arrays
 * of the heap, as the rows of Spark's own reader do: a row is valid until the next call of {@link #next}, and another
 * thread may look at the last one at any time, also when the task has ended.
 *
 * <p>One thread reads. Another one may call {@link #close}, such as the task's when rows feed an external program.
 * The thread that reads then gets an exception after the batch that it has, as Spark's own reader throws: Spark ends
 * the external program only if its feed fails. Rows that seemed to end would leave the program waiting for a reader of
 * its output for as long as the executor lives.
 */
final class RowIterator<K, C> extends AbstractIterator<Product2<K, C>> {
  private static final Logger LOG = LoggerFactory.getLogger(RowIterator.class);
  private static final int HEAD_BYTES = 8;

  /** Gives the inputs, one after the other, and null after the last. */
  interface Inputs {
    @Nullable RowSource next() throws IOException;
  }

  /** DECODING: a thread is decoding, and closes the input itself if the task ends meanwhile. */
  private enum State { IDLE, DECODING, CLOSED }

  private final AtomicReference<State> state = new AtomicReference<>(State.IDLE);
  /** Null if all rows were read. */
  @Nullable private Inputs inputs;
  private final RowReader reader;
  private final TaskContext context;
  private final ShuffleReadMetricsReporter metrics;
  private final Runnable onEnd;
  private final UnsafeRow row;
  /** The bytes of a row without values. */
  private final int minBytes;
  private final Product2<K, C> pair;
  private byte[] batch;
  /** The positions of the next row's head, and of the end of the batch. */
  private int at;
  private int end;
  /** True if the next row is longer than a batch, and its first piece is there. */
  private boolean longRowBegun;
  private final LongRow longRow = new LongRow();
  /** The number of rows of the batch, which is counted when the next one comes. */
  private int rowsInBatch;
  private RowSource input;
  private boolean readerHasBytes;
  private Failure failure;
  /** True if all rows were read. */
  private volatile boolean ended;

  /** A failure that {@link RowReader#next} has reported after rows, which are handed out first. */
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

  /** {@code onEnd} runs when the last row was read. */
  @SuppressWarnings("unchecked")
  RowIterator(Inputs inputs, RowReader reader, int fields, TaskContext context, ShuffleReadMetricsReporter metrics,
      Runnable onEnd) {
    this.inputs = inputs;
    this.reader = reader;
    this.context = context;
    this.metrics = metrics;
    this.onEnd = onEnd;
    row = new UnsafeRow(fields);
    minBytes = UnsafeRow.calculateBitSetWidthInBytes(fields) + 8 * fields;
    // Spark's reader gives a key too, which is always 0.
    pair = (Product2<K, C>) new Tuple2<Object, Object>(0, row);
  }

  @Override
  public boolean hasNext() {
    return at < end || longRowBegun || advance();
  }

  @Override
  public Product2<K, C> next() {
    while (at >= end) {
      if (!longRowBegun && !advance()) {
        throw new NoSuchElementException("no more rows");
      }
      if (longRowBegun && finishLongRow()) {
        return pair;
      }
    }
    int bytes = Platform.getInt(batch, Platform.BYTE_ARRAY_OFFSET + at);
    check(bytes, end - at - HEAD_BYTES);
    row.pointTo(batch, Platform.BYTE_ARRAY_OFFSET + at + HEAD_BYTES, bytes);
    at += HEAD_BYTES + bytes;
    return pair;
  }

  private void check(int bytes, int max) {
    if (bytes < minBytes || bytes > max) {
      throw new IllegalStateException("a row of " + bytes + " bytes, allowed: " + minBytes + " for its "
          + row.numFields() + " columns to the " + max + " that were decoded; other columns were written than are "
          + "read");
    }
  }

  /**
   * Decodes until there is a row, or the first piece of a long one. Returns false if there are no more. Throws if the
   * iterator was closed before its end.
   */
  private boolean advance() {
    if (ended) {
      return false;
    }
    countRows();
    return decoding(() -> {
      while (at >= end && !longRowBegun) {
        if (!step()) {
          return false;
        }
      }
      return true;
    });
  }

  /**
   * Points at the long row when all its pieces are there. The row before it may be in the same array, so they are
   * joined here and not when it is asked whether there is a row. Returns false if its part was corrupt and is decoded
   * anew.
   */
  private boolean finishLongRow() {
    check(reader.longRowBytes(), reader.longRowBytes());
    longRow.begin(reader);
    boolean whole = decoding(() -> {
      while (longRowBegun && !longRow.isWhole()) {
        if (!step()) {
          throw new IllegalStateException("the input ends inside a row of " + longRow.length() + " bytes");
        }
      }
      return longRowBegun;
    });
    if (whole) {
      longRowBegun = false;
      row.pointTo(longRow.bytes(), Platform.BYTE_ARRAY_OFFSET, longRow.length());
      metrics.incRecordsRead(1);
    }
    return whole;
  }

  private interface BlockDecoding {
    boolean run() throws IOException, FetchFailedException;
  }

  private boolean decoding(BlockDecoding decoding) {
    if (!state.compareAndSet(State.IDLE, State.DECODING)) {
      throw new IllegalStateException("the task has ended");
    }
    try {
      return decoding.run();
    } catch (IOException | FetchFailedException e) {
      throw PartFailure.raise(e);
    } finally {
      if (!state.compareAndSet(State.DECODING, State.IDLE)) {
        closeInput();
      }
    }
  }

  /** Decodes one batch, or reports a part's failure. Returns false if all rows were read. */
  private boolean step() throws IOException, FetchFailedException {
    context.killTaskIfInterrupted();
    if (failure != null) {
      Failure last = failure;
      failure = null;
      readerHasBytes = false;
      input.failed(last.part, last.problem, last.corrupt, last.handedOut);
    }
    if (!prepare()) {
      ended = true;
      inputs = null;
      context.taskMetrics().mergeShuffleReadMetrics();
      onEnd.run();
      return false;
    }
    decode();
    return true;
  }

  /** Gives the reader bytes if it has none. Returns false if there are none left. */
  private boolean prepare() throws IOException, FetchFailedException {
    while (!readerHasBytes) {
      if (input == null) {
        input = inputs.next();
        if (input == null) {
          return false;
        }
      }
      readerHasBytes = input.feed(reader);
      if (!readerHasBytes) {
        input.close();
        input = null;
      }
    }
    return true;
  }

  private void decode() throws IOException, FetchFailedException {
    RowReader.Step step = reader.next();
    input.read(reader.fileBytes());
    if (reader.rows() > 0) {
      batch = reader.batch();
      at = 0;
      end = reader.bytes();
      rowsInBatch = reader.rows();
    } else if (reader.longRowBytes() > 0) {
      if (longRowBegun) {
        longRow.add(reader);
      }
      longRowBegun = true;
    }
    switch (step) {
      case FULL:
        break;
      case DONE:
        readerHasBytes = false;
        break;
      case UNRESOLVED:
        readerHasBytes = input.resolve(reader.part());
        break;
      case CORRUPT:
        longRowBegun = false;
        failure = new Failure(reader, true);
        break;
      case UNREADABLE:
        longRowBegun = false;
        failure = new Failure(reader, false);
        break;
      default:
        throw new IllegalStateException("the task has ended");
    }
  }

  private void countRows() {
    if (rowsInBatch > 0) {
      metrics.incRecordsRead(rowsInBatch);
      rowsInBatch = 0;
    }
  }

  /**
   * Ends the reading, because all rows were read or the task has ended. Any thread may call it, and more than once.
   * Native memory is free afterwards.
   */
  void close() {
    State before = state.getAndSet(State.CLOSED);
    // Waits for a thread that is in native code.
    reader.close();
    if (before != State.CLOSED) {
      metrics.incRecordsRead(Math.max(0, rowsInBatch - rowsLeft()));
      rowsInBatch = 0;
    }
    if (before == State.IDLE) {
      closeInput();
    }
  }

  /** Returns the number of rows of the batch that were not handed out. Another thread may go on to hand them out. */
  private int rowsLeft() {
    byte[] last = batch;
    int left = 0;
    int limit = Math.min(end, last == null ? 0 : last.length);
    for (int head = at; head < limit; left++) {
      int bytes = Platform.getInt(last, Platform.BYTE_ARRAY_OFFSET + head);
      if (bytes < 0 || bytes > limit - head - HEAD_BYTES) {
        break;
      }
      head += HEAD_BYTES + bytes;
    }
    return left;
  }

  private void closeInput() {
    RowSource last = input;
    input = null;
    inputs = null;
    try {
      if (last != null) {
        last.close();
      }
    } catch (IOException e) {
      LOG.warn("Faro: a block of an ended task cannot be closed", e);
    }
  }

  /**
   * The pieces of a row that is longer than a batch, joined in one array of the heap, where the rows of Spark's own
   * reader are. The array is used again for the next such row.
   */
  static final class LongRow {
    /**
     * Rows up to this have memory at once. Of a longer one a sixteenth has to arrive first: its length may be wrong,
     * since without compression nothing has checked it yet.
     */
    private static final int TRUSTED_BYTES = 64 << 20;

    private byte[] bytes = new byte[0];
    private int length;
    private int arrived;

    /** Forgets the row before; the reader has brought the first piece of another one. */
    void begin(RowReader reader) {
      length = reader.longRowBytes();
      arrived = 0;
      if (bytes.length < length) {
        // The old array is free before there is a new one.
        bytes = null;
        bytes = new byte[length <= TRUSTED_BYTES ? length : length / 16];
      }
      add(reader);
    }

    /** Takes the piece that the reader has brought. */
    void add(RowReader reader) {
      int more = reader.bytes();
      if (reader.pieceOffset() != arrived || reader.longRowBytes() != length) {
        throw new IllegalStateException("a piece at byte " + reader.pieceOffset() + " of a row of "
            + reader.longRowBytes() + " bytes, expected: at " + arrived + " of " + length);
      }
      if (bytes.length - arrived < more) {
        bytes = Arrays.copyOf(bytes, length);
      }
      System.arraycopy(reader.batch(), 0, bytes, arrived, more);
      arrived += more;
    }

    boolean isWhole() {
      return arrived == length;
    }

    byte[] bytes() {
      return bytes;
    }

    int length() {
      return length;
    }
  }
}
