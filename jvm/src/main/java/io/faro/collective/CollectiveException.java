package io.faro.collective;

import io.faro.FaroException;

/**
 * A round that did not come about. Every member that needs the round gets one, naming the same rank. The team is of no
 * further use: whoever goes on takes new seats.
 */
public final class CollectiveException extends FaroException {
  private static final long serialVersionUID = 1L;

  /** What happened to the rank, or what it did; in the order of the codes of FarewellCause in native/wire. */
  public enum Reason {
    /** Its member closed before the round was over. */
    LEFT,
    /** It cannot be reached any more. */
    LOST,
    /** Its array's length or type, or its settings, are not those of the others. */
    MISMATCH,
    /** It has a value that is not a number. */
    NOT_A_NUMBER,
    /** It was waited for in vain. */
    TIMED_OUT,
    /** Bytes of it arrived damaged. */
    CORRUPT,
    /** Its caller was told to stop (a killed task), or had a fault of its own. */
    GAVE_UP
  }

  private final Reason reason;
  private final int rank;
  private final long round;

  /** Called by native code. */
  CollectiveException(String message, int cause, int rank, long round) {
    super(message);
    this.reason = Reason.values()[cause - 1];
    this.rank = rank;
    this.round = round;
  }

  public Reason reason() {
    return reason;
  }

  /** The rank with which it began. */
  public int rank() {
    return rank;
  }

  /** Rounds that were completed before. */
  public long round() {
    return round;
  }
}
