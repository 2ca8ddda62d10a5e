package io.faro.rows;

import io.faro.Endpoint;
import java.util.Arrays;

/**
 * Decodes shuffle blocks of Spark SQL into batches of rows. A batch is, for each row, 8 bytes (the row's length as an
 * int in the machine's byte order, then zeros) and the row; all positions are multiples of 8. A row that does not fit
 * into {@link #BATCH_BYTES} comes in pieces instead, so that its bytes need no native memory.
 *
 * <p>There are two arrays in turn: a batch stays valid until the call of {@link #next} after the one that brings other
 * bytes. So the last row stays valid while the caller looks whether there is another one, and after {@link #close}
 * all of them do. Thread-safe, so that a task's end may close a reader that another thread uses.
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

  /** Bytes that a batch has at most. As in native/jni/src/rows/session.rs. */
  public static final int BATCH_BYTES = 64 << 10;

  private static final Step[] STEPS = Step.values();

  /** 0: closed. Guarded by this. */
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

  /** The bytes of the last {@link #next} that brought some, from the first one on. */
  public byte[] batch() {
    return batch;
  }

  /** Bytes of rows, or of a piece of one, that the last {@link #next} brought. */
  public int bytes() {
    return (int) result[0];
  }

  /** Whole rows that the last {@link #next} brought; 0: none, but perhaps a piece of one. */
  public int rows() {
    return (int) result[1];
  }

  /** The bytes of the row of which the last {@link #next} brought a piece; 0: it brought none. */
  public int longRowBytes() {
    return (int) result[3];
  }

  /** Where that piece begins in its row. At 0, pieces before are of a part that failed, or of another row. */
  public int pieceOffset() {
    return (int) result[2];
  }

  /** The position of the part under way in the input. */
  public int part() {
    return (int) result[4];
  }

  /** Bytes that the last {@link #next} read from files. */
  public long fileBytes() {
    return result[5];
  }

  /** Whether rows of the part that failed were handed out, so that it must not be decoded again. */
  public boolean partWasHandedOut() {
    return result[6] != 0;
  }

  /** What the last failure was. */
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
