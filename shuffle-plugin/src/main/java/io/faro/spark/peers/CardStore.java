package io.faro.spark.peers;

import io.faro.Nullable;
import java.net.InetAddress;
import java.util.List;

/** Finds the endpoint cards of other executors. */
public interface CardStore {
  /** The result of a look-up. */
  interface Answer {
    /** {@code knownAt}: the addresses of the peer's host, as this host sees them; may be empty. */
    void found(byte[] card, List<InetAddress> knownAt);

    /** {@code why} is null if the peer answers and has no card. */
    void missing(@Nullable Throwable why);

    void gone();
  }

  /**
   * Calls exactly one method of {@code answer}, now or later, on any thread, unless it throws or the peer never
   * answers. Blocks while it connects. {@code since}: when the card was first wanted, by {@link System#nanoTime}.
   */
  void lookUp(PeerKey peer, long since, Answer answer) throws Exception;

  /** The peer cannot be reached. True: another look-up will say whether its executor has ended. */
  boolean doubt(PeerKey peer);
}
