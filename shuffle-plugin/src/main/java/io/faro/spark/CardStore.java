package io.faro.spark;

/** Finds the endpoint cards of other executors. */
interface CardStore {
  /** The result of a look-up. */
  interface Answer {
    void found(byte[] card);

    /** {@code why} is {@code null}: the peer answers and has no card. */
    void missing(Throwable why);

    /** The executor has ended or is about to. */
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
