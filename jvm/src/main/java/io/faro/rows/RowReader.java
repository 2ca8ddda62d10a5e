package io.faro.rows;

import io.faro.BlockIds;
import io.faro.Endpoint;
import java.util.Arrays;

/**
 * Decodes shuffle blocks of Spark SQL into batches of rows. In a batch each row has 8 bytes (the row's length as an int
 * in the machine's byte order, then zeros) and then its own bytes; all positions are multiples of 8. A row that does
 * not fit in {@link #BATCH_BYTES} is handed out in pieces instead, so that its bytes need no native memory.
 *
 * <p>Two arrays alternate. A batch stays valid until the second {@link #next} after it that brings bytes. So the last
 * row stays valid while the caller looks for another one, and all rows stay valid after {@link #close}. Thread-safe, so
 * that the end of a task may close a reader that another thread uses.
 */
public final class RowReader implements AutoCloseable {
  /** The result of a call of {@link #next}, in the order of native code's numbers. */
  public enum Step {
    /** The batch is full. There may be more. */
    FULL,
    /** The input is used up. */
    DONE,
    /** The files of part {@link #part} are not known to the endpoint: resolve them and call again. */
    UNRESOLVED,
    /** Part {@link #part} is corrupt. The rest of the input is dropped. */
    CORRUPT,
    /** The file of part {@link #part} cannot be read. The rest of the input is dropped. */
    UNREADABLE,
    CLOSED
  }

  /** Maximum size of a batch in bytes, as in native/jni/src/rows/session.rs. */
  public static final int BATCH_BYTES = 64 << 10;

  private static final Step[] STEPS = Step.values();

  /** The native handle; 0 if the reader is closed. Guarded by this. */
  private long handle;
  private final long[] result = new long[7];
  private byte[] batch;
  /** The array that the next bytes are copied to. */
  private byte[] spare;
  private long[] localParts = new long[0];

  private RowReader(long handle) {
    this.handle = handle;
  }

  public static RowReader open(RowCodec codec) {
    return new RowReader(RowsNative.open(codec.code));
  }

  /**
   * Starts to decode these parts. The caller keeps their memory until the next input or {@link #close}. Bytes after the
   * last {@link MemorySlices#endPart} belong to a part that continues in the next input.
   */
  public synchronized void input(MemorySlices slices) {
    if (handle != 0) {
      RowsNative.input(handle, slices.slices(), slices.count());
    }
  }

  /**
   * Starts to decode map outputs of this process: {@code count} parts of one shuffle from position {@code first} on.
   * Throws {@link io.faro.EndpointException.Closed}, which is not declared, if the endpoint was closed.
   */
  public synchronized void input(Endpoint endpoint, BlockIds parts, int first, int count) {
    if (localParts.length < 3 * count) {
      localParts = Arrays.copyOf(localParts, 3 * count);
    }
    int shuffle = FileParts.shuffleOf(parts, first, count, localParts);
    if (handle != 0) {
      RowsNative.inputLocal(handle, endpoint.nativeHandle(), shuffle, localParts, count);
    }
  }

  /** Decodes until a batch is full or the input ends. Even if it fails, the batch may have rows of the parts before. */
  public synchronized Step next() {
    if (handle == 0) {
      Arrays.fill(result, 0, 4, 0);
      return Step.CLOSED;
    }
    if (spare == null) {
      spare = new byte[BATCH_BYTES];
    }
    Step step = STEPS[RowsNative.next(handle, spare, result)];
    if (bytes() > 0) {
      byte[] before = batch;
      batch = spare;
      spare = before;
    }
    return step;
  }

  /** Returns the array of the last {@link #next} that brought bytes; they begin at index 0. */
  public byte[] batch() {
    return batch;
  }

  /** Returns the bytes of rows, or of a piece of a row, that the last {@link #next} brought. */
  public int bytes() {
    return (int) result[0];
  }

  /**
   * Returns the number of whole rows that the last {@link #next} brought. If it is 0, there may be a piece of a row.
   */
  public int rows() {
    return (int) result[1];
  }

  /** Returns the size of the row of which the last {@link #next} brought a piece; 0 if it brought none. */
  public int longRowBytes() {
    return (int) result[3];
  }

  /**
   * Returns the offset of that piece in its row. A piece with offset 0 starts a new row; earlier pieces belong to
   * another row, or to a part that failed.
   */
  public int pieceOffset() {
    return (int) result[2];
  }

  /** Returns the position of the current part in the input. */
  public int part() {
    return (int) result[4];
  }

  /** Returns the number of bytes that the last {@link #next} read from files. */
  public long fileBytes() {
    return result[5];
  }

  /** Returns whether rows of the part that failed were handed out, so that it must not be decoded again. */
  public boolean partWasHandedOut() {
    return result[6] != 0;
  }

  public synchronized String problem() {
    return handle == 0 ? "the reader was closed" : RowsNative.problem(handle);
  }

  /** Frees all native memory. The batches stay as they are. Idempotent. */
  @Override
  public synchronized void close() {
    long last = handle;
    handle = 0;
    if (last != 0) {
      RowsNative.close(last);
    }
  }
}
