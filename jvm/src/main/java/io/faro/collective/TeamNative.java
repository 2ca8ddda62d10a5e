package io.faro.collective;

import io.faro.FaroException;
import java.util.function.BooleanSupplier;

/** The JNI boundary of collectives, as {@code io.faro.Native} is that of fetches; see native/jni/src/collective.rs. */
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

  static native long seat(long endpoint) throws FaroException;

  static native byte[] invitation(long seat) throws FaroException;

  static native void giveUp(long seat);

  /** Ends the seat's handle, whatever comes of it. */
  static native long join(long seat, int rank, byte[][] invitations) throws FaroException;

  /** Ends the team's handle; a round under way on another thread ends with an error. */
  static native void leave(long team);

  /** One round over {@code length} values from position {@code offset} of what {@code storage} says. */
  static native void reduce(
      long team, int storage, Object values, int offset, int length, int mode, int group, long epoch, int operation,
      boolean failOnNan, long timeoutMillis, BooleanSupplier cancelled)
      throws FaroException;
}
