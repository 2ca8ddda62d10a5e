package io.faro.collective;

import io.faro.Endpoint;
import io.faro.FaroException;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * A place in a team that is to be. Taken before the members tell each other who they are, so that whoever is first may
 * begin at once: what comes for a seat waits there.
 */
public final class Seat implements AutoCloseable {
  private final String invitation;
  private long handle;

  private Seat(long handle, String invitation) {
    this.handle = handle;
    this.invitation = invitation;
  }

  /** A seat on this process's endpoint; several are possible. */
  public static Seat on(Endpoint endpoint) throws FaroException {
    long handle = TeamNative.seat(endpoint.nativeHandle());
    boolean complete = false;
    try {
      String invitation = new String(TeamNative.invitation(handle), StandardCharsets.UTF_8);
      complete = true;
      return new Seat(handle, invitation);
    } finally {
      if (!complete) {
        TeamNative.giveUp(handle);
      }
    }
  }

  /** What the other members need, a few lines of text. Whoever has it can write to this seat: tell members only. */
  public String invitation() {
    return invitation;
  }

  /**
   * Takes this seat's place among all that are invited, in the order of their ranks, this one's own included. Talks to
   * nobody yet. The seat is used up.
   */
  public synchronized GroupedAllReduce join(int rank, List<String> invitations, Settings settings)
      throws FaroException {
    if (handle == 0) {
      throw new IllegalStateException("the seat was used or closed");
    }
    byte[][] all = new byte[invitations.size()][];
    for (int i = 0; i < all.length; i++) {
      all[i] = invitations.get(i).getBytes(StandardCharsets.UTF_8);
    }
    if (settings.mode == Mode.DSSYNC && all.length > 1 && settings.groupOf(all.length) > all.length) {
      throw new IllegalArgumentException(
          "group is " + settings.group + ", allowed: 2 to the number of members, " + all.length);
    }
    long seat = handle;
    handle = 0;
    return new GroupedAllReduce(TeamNative.join(seat, rank, all), rank, all.length, settings);
  }

  /** Gives the seat up, unless it was used. */
  @Override
  public synchronized void close() {
    if (handle != 0) {
      TeamNative.giveUp(handle);
      handle = 0;
    }
  }
}
