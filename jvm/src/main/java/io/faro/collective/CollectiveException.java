package io.faro.collective;

import io.faro.FaroException;

/**
 * A round failed. All members that need the failed member's part get this exception with the same rank. The team cannot
 * be used any more; join a new one to continue.
 */
public final class CollectiveException extends FaroException {
  private static final long serialVersionUID = 1L;

  /** The reason that a member failed the round, in the order of the codes of AbortCause in native/wire. */
  public enum Reason {
    /** The member left the team before the round was over. */
    LEFT,
    LOST,
    /** The member's array has another length or type, or its settings differ. */
    MISMATCH,
    /** The member has a value that is not a number. */
    NOT_A_NUMBER,
    TIMED_OUT,
    CORRUPT,
    /** The member's caller was cancelled (a killed task), or failed itself. */
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

  /** Returns the rank of the member that failed first. */
  public int rank() {
    return rank;
  }

  /** Returns the number of rounds completed before this one. */
  public long round() {
    return round;
  }
}
