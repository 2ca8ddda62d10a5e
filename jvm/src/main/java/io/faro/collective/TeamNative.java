package io.faro.collective;

import io.faro.FaroException;
import java.util.function.BooleanSupplier;

/** The JNI boundary of collectives, as {@code io.faro.Native} is that of fetches; see native/jni/src/collective. */
final class TeamNative {
  /** A {@code float[]}. */
  static final int FLOATS = 0;
  /** A {@code double[]}. */
  static final int DOUBLES = 1;
  /** A direct {@code FloatBuffer} in native order. */
  static final int FLOAT_BUFFER = 2;
  /** A direct {@code DoubleBuffer} in native order. */
  static final int DOUBLE_BUFFER = 3;

  static final int SUM = 1;
  static final int MEAN = 2;

  private TeamNative() {}

  /** Creates a member and returns its handle. */
  static native long member(long endpoint) throws FaroException;

  /** Sets the rack, in UTF-8, which the bootstrap id has. */
  static native void setRack(long member, byte[] rack) throws FaroException;

  /** Returns the bootstrap id, in UTF-8. */
  static native byte[] bootstrapId(long member) throws FaroException;

  /** Releases a member. Does nothing for an invalid handle. */
  static native void releaseMember(long member);

  /** Joins a team and returns its handle. The member's handle ends, even if this throws. */
  static native long join(long member, int rank, byte[][] bootstrapIds) throws FaroException;

  /** See {@link Settings#slowMembersApart}; before the first round. */
  static native void keepSlowApart(long team) throws FaroException;

  /** Ends the team's handle; a round on another thread ends with an error. */
  static native void leave(long team);

  /**
   * Runs one round over {@code length} values from position {@code offset}. {@code storage} is the type of {@code
   * values}.
   */
  static native void reduce(
      long team, int storage, Object values, int offset, int length, int mode, int group, long epoch, int operation,
      boolean failOnNan, long timeoutMillis, BooleanSupplier cancelled)
      throws FaroException;
}
