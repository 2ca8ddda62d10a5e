package io.faro.spark;

/** Finds the endpoint cards of other executors; may block. */
interface CardStore {
  /** {@code null}: the peer answers and has no card. */
  byte[] lookUp(PeerKey peer) throws Exception;
}
