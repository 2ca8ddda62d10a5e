package io.faro.rows;

import io.faro.Endpoint;
import java.util.Arrays;

/**
 * Decodes shuffle blocks of Spark SQL into batches of rows in native memory. A batch is, for each row, 8 bytes (the
 * row's length as an int, then zeros) and the row; all addresses are multiples of 8.
 *
 * <p>A batch stays valid until the call of {@link #next} after the one that brings other rows: so the last row stays
 * valid while the caller looks whether there is another one. Thread-safe, so that a task's end may close a reader that
 * another thread uses.
 */
public final class RowReader implements AutoCloseable {
  /** How a call of {@link #next} ended; in the order of native code's numbers. */
  public enum Step {
    /** The batch is full. There may be more. */
    FULL,
    /** The input is used up. */
    DONE,
    /** The files of part {@link #part} are not known to the endpoint: resolve them and go on. */
    UNRESOLVED,
    /** Part {@link #part} is corrupt. The rest of the input is dropped. */
    CORRUPT,
    /** The file of part {@link #part} cannot be read. The rest of the input is dropped. */
    UNREADABLE,
    /** The reader was closed. */
    CLOSED
  }

  private static final Step[] STEPS = Step.values();

  /** 0: closed. Guarded by this. */
  private long handle;
  private final long[] result = new long[6];
  private long[] localParts = new long[0];

  private RowReader(long handle) {
    this.handle = handle;
  }

  public static RowReader open(RowCodec codec) {
    return new RowReader(RowsNative.open(codec.code));
  }

  /**
   * Decodes these parts from now on; the caller keeps their memory until the next input or {@link #close}. Bytes behind
   * the last {@link MemorySlices#endPart} are of a part that goes on in the next input.
   */
  public synchronized void input(MemorySlices slices) {
    if (handle != 0) {
      RowsNative.input(handle, slices.slices(), slices.count());
    }
  }

  /**
   * Decodes map outputs of this process from now on: {@code count} parts from position {@code first} of the arrays,
   * each the partitions {@code starts[i]} to {@code ends[i]} (exclusive) of map output {@code maps[i]}. Throws {@link
   * io.faro.EndpointException.Closed}, which is not declared, when the endpoint was closed.
   */
  public synchronized void input(
      Endpoint endpoint, int shuffle, long[] maps, int[] starts, int[] ends, int first, int count) {
    if (localParts.length < 3 * count) {
      localParts = Arrays.copyOf(localParts, 3 * count);
    }
    for (int i = 0; i < count; i++) {
      localParts[3 * i] = maps[first + i];
      localParts[3 * i + 1] = starts[first + i];
      localParts[3 * i + 2] = ends[first + i];
    }
    if (handle != 0) {
      RowsNative.inputLocal(handle, endpoint.nativeHandle(), shuffle, localParts, count);
    }
  }

  /** Decodes until a batch is full or the input ends; also when it fails there may be rows of the parts before. */
  public synchronized Step next() {
    if (handle == 0) {
      result[2] = 0;
      return Step.CLOSED;
    }
    return STEPS[RowsNative.next(handle, result)];
  }

  /** Address of the batch of the last {@link #next}. */
  public long address() {
    return result[0];
  }

  /** Its bytes. */
  public long bytes() {
    return result[1];
  }

  /** Its rows; 0: there is no new batch. */
  public int rows() {
    return (int) result[2];
  }

  /** The position of the part under way in the input. */
  public int part() {
    return (int) result[3];
  }

  /** Bytes that the last {@link #next} read from files. */
  public long fileBytes() {
    return result[4];
  }

  /** Whether rows of the part that failed were handed out, so that it must not be decoded again. */
  public boolean partWasHandedOut() {
    return result[5] != 0;
  }

  /** What the last failure was. */
  public synchronized String problem() {
    return handle == 0 ? "the reader was closed" : RowsNative.problem(handle);
  }

  /** Rows stay readable, with undefined content. Idempotent. */
  @Override
  public synchronized void close() {
    long last = handle;
    handle = 0;
    if (last != 0) {
      RowsNative.close(last);
    }
  }
}
