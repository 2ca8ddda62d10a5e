package io.faro.collective;

import io.faro.FaroException;

/**
 * A round failed. All members that need the failed member's part get this exception with the same rank. The team cannot
 * be used any more; to go on, join a new one.
 */
public final class CollectiveException extends FaroException {
  private static final long serialVersionUID = 1L;

  /** Reason why a member failed the round; in the order of the codes of AbortCause in native/wire. */
  public enum Reason {
    /** It left the team before the round was over. */
    LEFT,
    /** The connection to it is lost. */
    LOST,
    /** Its array's length or type, or its settings, are not those of the others. */
    MISMATCH,
    /** It has a value that is not a number. */
    NOT_A_NUMBER,
    /** Its part did not come within the time limit. */
    TIMED_OUT,
    /** Its bytes arrived damaged. */
    CORRUPT,
    /** Its caller was cancelled (a killed task), or failed itself. */
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

  /** The member that failed first. */
  public int rank() {
    return rank;
  }

  /** The number of rounds completed before this one. */
  public long round() {
    return round;
  }
}
