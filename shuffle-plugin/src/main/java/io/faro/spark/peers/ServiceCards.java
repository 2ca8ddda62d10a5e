package io.faro.spark.peers;

import io.faro.spark.service.DriverLink;
import java.util.Collections;

/** Finds the cards of the node services that keep the outputs of executors: the driver knows them. */
public final class ServiceCards implements CardStore {
  private final DriverLink driver;

  public ServiceCards(DriverLink driver) {
    this.driver = driver;
  }

  @Override
  public void lookUp(PeerKey peer, long since, Answer answer) throws Exception {
    byte[] card = driver.cardOf(peer.executor);
    if (card.length == 0) {
      answer.missing(null);
    } else {
      // The service may have another address than its executors have, as a pod's: the one on its card counts.
      answer.found(card, Collections.emptyList());
    }
  }

  /** A service that was started again has another card. */
  @Override
  public boolean doubt(PeerKey peer) {
    return true;
  }
}
