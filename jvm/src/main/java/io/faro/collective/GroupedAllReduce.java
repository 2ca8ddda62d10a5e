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
 * This member's end of a team: rounds in which the members' arrays become their mean or sum.
 *
 * <p>Every member calls the same methods in the same order with arrays of one length and type. A call is one round: it
 * changes the array in place and returns when this member's part is done, while others may still be at theirs; there
 * is no barrier. What a round covers (the whole team, or a group that changes from round to round) is the
 * {@link Mode}'s.
 *
 * <p>Values travel through leases of the endpoint's arena, over whatever fabric the pair of endpoints has. Of what this
 * member sends there is one copy, from the array into a lease; what arrives is added from the lease into the array.
 * Arithmetic runs on the calling thread. Sums are in the order of ranks whatever arrives first, so with {@link
 * Mode#GRID} and {@link Mode#FULL} all members get the same bits.
 *
 * <p>A round ends with a {@link CollectiveException} that names a rank when a member is lost, leaves, has another
 * length, has a NaN (see {@link NanPolicy}) or does not come within the time limit, and when the calling thread is
 * interrupted (which stays set). The array then holds anything, and the team is of no further use. Rounds are one
 * thread's at a time; {@link #close} may be called from any.
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

  /** This member, from 0. */
  public int rank() {
    return rank;
  }

  /** Members of the team. */
  public int ranks() {
    return ranks;
  }

  public Settings settings() {
    return settings;
  }

  /** Asked several times a second by a round that waits; {@code true} ends the round. Interrupts end it anyway. */
  public void cancelWhen(BooleanSupplier condition) {
    cancelled = Objects.requireNonNull(condition, "condition");
  }

  /** Replaces the values by their mean. */
  public void mean(float[] values) throws FaroException {
    reduce(TeamNative.FLOATS, values, values.length, TeamNative.MEAN);
  }

  /** Replaces the values by their mean. */
  public void mean(double[] values) throws FaroException {
    reduce(TeamNative.DOUBLES, values, values.length, TeamNative.MEAN);
  }

  /** Replaces the values from position to limit by their mean. A direct buffer in native byte order. */
  public void mean(FloatBuffer values) throws FaroException {
    reduceBuffer(values, TeamNative.MEAN);
  }

  /** Replaces the values from position to limit by their mean. A direct buffer in native byte order. */
  public void mean(DoubleBuffer values) throws FaroException {
    reduceBuffer(values, TeamNative.MEAN);
  }

  /** Replaces the values by their sum. */
  public void sum(float[] values) throws FaroException {
    reduce(TeamNative.FLOATS, values, values.length, TeamNative.SUM);
  }

  /** Replaces the values by their sum. */
  public void sum(double[] values) throws FaroException {
    reduce(TeamNative.DOUBLES, values, values.length, TeamNative.SUM);
  }

  /** Replaces the values from position to limit by their sum. A direct buffer in native byte order. */
  public void sum(FloatBuffer values) throws FaroException {
    reduceBuffer(values, TeamNative.SUM);
  }

  /** Replaces the values from position to limit by their sum. A direct buffer in native byte order. */
  public void sum(DoubleBuffer values) throws FaroException {
    reduceBuffer(values, TeamNative.SUM);
  }

  private void reduceBuffer(FloatBuffer values, int operation) throws FaroException {
    FloatBuffer slice = values.slice();
    check(slice, slice.order());
    reduce(TeamNative.FLOAT_BUFFER, slice, slice.remaining(), operation);
  }

  private void reduceBuffer(DoubleBuffer values, int operation) throws FaroException {
    DoubleBuffer slice = values.slice();
    check(slice, slice.order());
    reduce(TeamNative.DOUBLE_BUFFER, slice, slice.remaining(), operation);
  }

  private static void check(Buffer values, ByteOrder order) {
    if (!values.isDirect() || values.isReadOnly() || order != ByteOrder.nativeOrder()) {
      throw new IllegalArgumentException(
          "values are in a " + (values.isDirect() ? "direct" : "heap") + (values.isReadOnly() ? ", read-only" : "")
              + " buffer of order " + order + ", allowed: direct, writable, " + ByteOrder.nativeOrder());
    }
  }

  private void reduce(int storage, Object values, int length, int operation) throws FaroException {
    long team = handle.get();
    if (team == 0) {
      throw new EndpointException.Closed("the team of rank " + rank + " was closed");
    }
    BooleanSupplier stop = cancelled;
    TeamNative.reduce(
        team, storage, values, 0, length, settings.mode.code(), settings.groupOf(ranks), settings.seed, operation,
        settings.nanPolicy == NanPolicy.FAIL, settings.timeoutMillis,
        () -> Thread.currentThread().isInterrupted() || stop.getAsBoolean());
  }

  /**
   * Leaves the team. Members that still need this one get a {@link CollectiveException}; those that have all they
   * need from it do not notice. A round under way on another thread ends. Idempotent.
   */
  @Override
  public void close() {
    long team = handle.getAndSet(0);
    if (team != 0) {
      TeamNative.leave(team);
    }
  }
}
