package io.faro.spark;

/** Where endpoint cards of other executors come from; may block. */
interface CardStore {
  /** {@code null}: the peer is there and has no card. */
  byte[] lookUp(PeerKey peer) throws Exception;
}
