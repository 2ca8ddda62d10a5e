package io.faro.spark.peers;

import io.faro.spark.service.DriverLink;
import io.faro.spark.service.KeptBy;
import io.faro.spark.service.ServiceHosts;
import java.util.Collections;

/** Finds the cards of the node services that keep the outputs of executors: the driver knows them. */
public final class ServiceCards implements CardStore {
  private final DriverLink driver;
  private final ServiceHosts hosts;

  public ServiceCards(DriverLink driver, ServiceHosts hosts) {
    this.driver = driver;
    this.hosts = hosts;
  }

  @Override
  public void lookUp(PeerKey peer, long since, Answer answer) throws Exception {
    KeptBy service = driver.serviceOf(peer.executor);
    if (service == null) {
      answer.missing(null);
    } else {
      hosts.keeps(peer.executor, service.place);
      // The service may have another address than its executors have, as a pod's: the one on its card counts.
      answer.found(service.card, Collections.emptyList());
    }
  }

  /** A service that was started again has another card. */
  @Override
  public boolean doubt(PeerKey peer) {
    return true;
  }
}
