package io.faro.spark.peers;

import io.faro.spark.service.ServiceHosts;
import java.util.Collections;

/** Finds the cards of node services by their places in the application's list. */
public final class ReplicaCards implements CardStore {
  /** The name that the tab shows in the place of an executor's id. */
  private static final String NAME = "(copies)";

  private final ServiceHosts hosts;

  public ReplicaCards(ServiceHosts hosts) {
    this.hosts = hosts;
  }

  /** The service at that place, as a peer. */
  public static PeerKey peer(int place) {
    return new PeerKey(NAME, "node-service-" + place, place);
  }

  @Override
  public void lookUp(PeerKey peer, long since, Answer answer) {
    byte[] card = hosts.card(peer.port);
    if (card == null) {
      answer.missing(null);
    } else {
      answer.found(card, Collections.emptyList());
    }
  }

  /** A service that was started again has another card. */
  @Override
  public boolean doubt(PeerKey peer) {
    return true;
  }
}
