package io.faro.collective;

import io.faro.EndpointException;
import io.faro.FaroException;
import java.nio.Buffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;

/**
 * A member's team: each round replaces the members' arrays by their mean or sum.
 *
 * <p>Every member calls the same methods in the same order with arrays of one length and type. A call is one round: it
 * changes the array in place and returns when this member's part is done; others may still work, as there is no
 * barrier. The {@link Mode} decides whether a round covers the whole team or a group that changes from round to round.
 *
 * <p>Values travel through leases of the endpoint's arena, over the fabric of the pair of endpoints. A sent value is
 * copied once, from the array into a lease; a received value is added from the lease into the array. The calling thread
 * does the arithmetic. Sums are formed in the order of ranks, so with {@link Mode#GRID} and {@link Mode#FULL} all
 * members get the same bits.
 *
 * <p>A round ends with a {@link CollectiveException} that names a rank when a member is lost, leaves, has another
 * length, has a NaN (see {@link NanPolicy}) or does not come within the time limit, and when the calling thread is
 * interrupted (its interrupt status stays set). The content of the array is then undefined, and the team cannot be used
 * any more. One thread at a time runs rounds; any thread may call {@link #close}.
 */
public final class GroupedAllReduce implements AutoCloseable {
  private final AtomicLong handle;
  private final int rank;
  private final int ranks;
  private final Settings settings;
  private volatile BooleanSupplier cancelled = () -> false;

  GroupedAllReduce(long handle, int rank, int ranks, Settings settings) {
    this.handle = new AtomicLong(handle);
    this.rank = rank;
    this.ranks = ranks;
    this.settings = settings;
  }

  /** Tells the native team what it must know before its first round. */
  void applySettings() throws FaroException {
    if (settings.slowMembersApart) {
      TeamNative.keepSlowApart(handle.get());
    }
  }

  /** Returns the rank of this member, from 0. */
  public int rank() {
    return rank;
  }

  public int ranks() {
    return ranks;
  }

  public Settings settings() {
    return settings;
  }

  /**
   * Sets a condition that ends a round when it is {@code true}. A waiting round checks it several times a second. An
   * interrupt ends a round too.
   */
  public void cancelWhen(BooleanSupplier condition) {
    cancelled = Objects.requireNonNull(condition, "condition");
  }

  /** Replaces the values by their mean. */
  public void mean(float[] values) throws FaroException {
    reduce(TeamNative.FLOATS, values, values.length, TeamNative.MEAN, settings.mode);
  }

  /** Replaces the values by their mean. */
  public void mean(double[] values) throws FaroException {
    reduce(TeamNative.DOUBLES, values, values.length, TeamNative.MEAN, settings.mode);
  }

  /** Replaces the values from position to limit by their mean. The buffer must be direct and in native byte order. */
  public void mean(FloatBuffer values) throws FaroException {
    reduceBuffer(values, TeamNative.MEAN, settings.mode);
  }

  /** Replaces the values from position to limit by their mean. The buffer must be direct and in native byte order. */
  public void mean(DoubleBuffer values) throws FaroException {
    reduceBuffer(values, TeamNative.MEAN, settings.mode);
  }

  /** Replaces the values by their sum. */
  public void sum(float[] values) throws FaroException {
    reduce(TeamNative.FLOATS, values, values.length, TeamNative.SUM, settings.mode);
  }

  /** Replaces the values by their sum. */
  public void sum(double[] values) throws FaroException {
    reduce(TeamNative.DOUBLES, values, values.length, TeamNative.SUM, settings.mode);
  }

  /** Replaces the values from position to limit by their sum. The buffer must be direct and in native byte order. */
  public void sum(FloatBuffer values) throws FaroException {
    reduceBuffer(values, TeamNative.SUM, settings.mode);
  }

  /** Replaces the values from position to limit by their sum. The buffer must be direct and in native byte order. */
  public void sum(DoubleBuffer values) throws FaroException {
    reduceBuffer(values, TeamNative.SUM, settings.mode);
  }

  /**
   * Replaces the values by their exact mean over all members, whatever the mode: after the last round of {@link
   * Mode#DSSYNC}, all members have the same bits.
   */
  public void meanOfAll(float[] values) throws FaroException {
    reduce(TeamNative.FLOATS, values, values.length, TeamNative.MEAN, exactMode());
  }

  /** Does the same for doubles. */
  public void meanOfAll(double[] values) throws FaroException {
    reduce(TeamNative.DOUBLES, values, values.length, TeamNative.MEAN, exactMode());
  }

  /** Does the same for the values of a buffer; see {@link #mean(FloatBuffer)}. */
  public void meanOfAll(FloatBuffer values) throws FaroException {
    reduceBuffer(values, TeamNative.MEAN, exactMode());
  }

  /** Does the same for the values of a buffer; see {@link #mean(DoubleBuffer)}. */
  public void meanOfAll(DoubleBuffer values) throws FaroException {
    reduceBuffer(values, TeamNative.MEAN, exactMode());
  }

  private Mode exactMode() {
    return settings.mode == Mode.DSSYNC ? Mode.GRID : settings.mode;
  }

  private void reduceBuffer(FloatBuffer values, int operation, Mode mode) throws FaroException {
    FloatBuffer slice = values.slice();
    check(slice, slice.order());
    reduce(TeamNative.FLOAT_BUFFER, slice, slice.remaining(), operation, mode);
  }

  private void reduceBuffer(DoubleBuffer values, int operation, Mode mode) throws FaroException {
    DoubleBuffer slice = values.slice();
    check(slice, slice.order());
    reduce(TeamNative.DOUBLE_BUFFER, slice, slice.remaining(), operation, mode);
  }

  private static void check(Buffer values, ByteOrder order) {
    if (!values.isDirect() || values.isReadOnly() || order != ByteOrder.nativeOrder()) {
      throw new IllegalArgumentException(
          "values are in a " + (values.isDirect() ? "direct" : "heap") + (values.isReadOnly() ? ", read-only" : "")
              + " buffer of order " + order + ", allowed: direct, writable, " + ByteOrder.nativeOrder());
    }
  }

  private void reduce(int storage, Object values, int length, int operation, Mode mode) throws FaroException {
    long team = handle.get();
    if (team == 0) {
      throw new EndpointException.Closed("the team of rank " + rank + " was closed");
    }
    BooleanSupplier stop = cancelled;
    TeamNative.reduce(
        team, storage, values, 0, length, mode.code(), settings.groupOf(ranks), settings.seed, operation,
        settings.nanPolicy == NanPolicy.FAIL, settings.timeoutMillis,
        () -> Thread.currentThread().isInterrupted() || stop.getAsBoolean());
  }

  /**
   * Leaves the team. Members that still need a part of this one get a {@link CollectiveException}. A round on another
   * thread ends. Idempotent.
   */
  @Override
  public void close() {
    long team = handle.getAndSet(0);
    if (team != 0) {
      TeamNative.leave(team);
    }
  }
}
