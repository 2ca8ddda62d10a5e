package io.faro.spark.service;

import io.faro.service.NodeService;
import io.faro.service.ServiceException;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Copies of map outputs on other hosts, as an executor sees to them: it tells the node service of its host which other
 * services there are, which it knows from the driver, and asks it how many copies are missing.
 */
final class ReplicaLocations {
  private static final Logger LOG = LoggerFactory.getLogger(ReplicaLocations.class);
  private static final long PAUSE_MILLIS = 250;

  private final ServiceConnection connection;
  private final DriverLink driver;
  private final ServiceHosts hosts;
  /** Copies of outputs of this host that other services do not have yet, as its service said last. */
  private volatile long behind;

  ReplicaLocations(ServiceConnection connection, DriverLink driver, ServiceHosts hosts) {
    this.connection = connection;
    this.driver = driver;
    this.hosts = hosts;
  }

  boolean wanted() {
    return hosts.replicas() > 0;
  }

  /** Tells a service that was connected to now of all others. */
  void tellAll(NodeService now) {
    if (wanted()) {
      tell(now, hosts.all());
    }
  }

  /** Tells the service of this host which others there are: it copies from them, and they from it. */
  private void tell(NodeService now, Map<Integer, byte[]> cards) {
    try {
      int size = hosts.size();
      for (Map.Entry<Integer, byte[]> one : cards.entrySet()) {
        now.host(hosts.replicas(), one.getKey(), size, one.getValue());
      }
    } catch (ServiceException.Lost e) {
      LOG.debug("Faro: the node service was lost, and gets the other hosts when it has come back", e);
      connection.lost(now);
    } catch (Exception e) {
      LOG.debug("Faro: the node service does not take the list of other hosts", e);
    }
  }

  /** Takes the driver's list of services whenever it has changed, until the application or the link ends. */
  void followHosts() {
    try {
      while (!connection.isStopped()) {
        try {
          byte[] changes = driver.hostsAfter(hosts.version());
          if (changes.length == 0) {
            return;
          }
          Map<Integer, byte[]> cards = hosts.take(changes);
          NodeService now = connection.service();
          if (now != null) {
            tell(now, cards);
          }
        } catch (Exception e) {
          // This comes also when Spark's RPC has waited for long enough.
          LOG.trace("Faro: the driver has not said which node services there are", e);
          connection.pause(PAUSE_MILLIS);
        }
      }
    } catch (InterruptedException e) {
      LOG.debug("Faro: the list of node services is not followed any more", e);
    }
  }

  /** Asks the service how many copies are missing. */
  void ask() {
    NodeService now = connection.service();
    try {
      behind = now == null ? 0 : now.behind();
    } catch (ServiceException.Lost e) {
      connection.lost(now);
    } catch (Exception e) {
      LOG.debug("Faro: the node service does not say how many copies are missing", e);
    }
  }

  /** Copies of outputs of this host that other services do not have yet; 0 without a service. */
  long behind() {
    return connection.service() == null ? 0 : behind;
  }
}
