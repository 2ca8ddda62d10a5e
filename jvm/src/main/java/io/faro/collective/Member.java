package io.faro.collective;

import io.faro.Endpoint;
import io.faro.FaroException;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * A future member of a team. It exists before the members exchange their bootstrap ids, so that the first one to join
 * may begin at once: messages for a member that has not joined wait for it.
 */
public final class Member implements AutoCloseable {
  private final String bootstrapId;
  /** The native handle; 0 after {@link #join} or {@link #close}. */
  private long handle;

  private Member(long handle, String bootstrapId) {
    this.handle = handle;
    this.bootstrapId = bootstrapId;
  }

  /** Returns a member on this process's endpoint; an endpoint may have several. */
  public static Member on(Endpoint endpoint) throws FaroException {
    return on(endpoint, "");
  }

  /**
   * Returns a member in a rack: members of one rack exchange with each other where they can. An empty name stands for
   * an unknown rack.
   */
  public static Member on(Endpoint endpoint, String rack) throws FaroException {
    long handle = TeamNative.member(endpoint.nativeHandle());
    boolean complete = false;
    try {
      TeamNative.setRack(handle, rack.getBytes(StandardCharsets.UTF_8));
      String bootstrapId = new String(TeamNative.bootstrapId(handle), StandardCharsets.UTF_8);
      complete = true;
      return new Member(handle, bootstrapId);
    } finally {
      if (!complete) {
        TeamNative.releaseMember(handle);
      }
    }
  }

  /**
   * Returns the text by which other members reach this one, in a few lines. A process that has it can write into this
   * member's part of a round, so give it to members only.
   */
  public String bootstrapId() {
    return bootstrapId;
  }

  /**
   * Joins the team of these bootstrap ids, which are in the order of ranks and include this member's own. Sends nothing
   * yet. This object cannot be used again, even if this throws after checking its arguments.
   */
  public synchronized GroupedAllReduce join(int rank, List<String> bootstrapIds, Settings settings)
      throws FaroException {
    if (handle == 0) {
      throw new IllegalStateException("this member has joined a team or was closed");
    }
    byte[][] all = new byte[bootstrapIds.size()][];
    for (int i = 0; i < all.length; i++) {
      all[i] = bootstrapIds.get(i).getBytes(StandardCharsets.UTF_8);
    }
    if (settings.mode == Mode.DSSYNC && all.length > 1 && settings.groupOf(all.length) > all.length) {
      throw new IllegalArgumentException(
          "group is " + settings.group + ", allowed: 2 to the number of members, " + all.length);
    }
    long member = handle;
    handle = 0;
    GroupedAllReduce team =
        new GroupedAllReduce(TeamNative.join(member, rank, all), rank, all.length, settings);
    team.applySettings();
    return team;
  }

  /** Releases the member unless it has joined a team. */
  @Override
  public synchronized void close() {
    if (handle != 0) {
      TeamNative.releaseMember(handle);
      handle = 0;
    }
  }
}
