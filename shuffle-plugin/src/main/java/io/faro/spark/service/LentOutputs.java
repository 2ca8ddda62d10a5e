package io.faro.spark.service;

import io.faro.Endpoint;
import io.faro.service.NodeService;
import io.faro.service.ServiceException;
import io.faro.spark.metrics.PluginCounters;
import io.faro.spark.read.places.LoanClient;
import java.util.Collection;
import java.util.Collections;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Map outputs that the node service of this host lends to this executor. The endpoint has the open files, a bounded
 * number of them, and closes them with their shuffle and with itself, so nothing of them belongs to a task.
 */
public final class LentOutputs implements LoanClient {
  private static final Logger LOG = LoggerFactory.getLogger(LentOutputs.class);

  private final ServiceConnection connection;
  private final Endpoint endpoint;
  private final PluginCounters counters;
  private final Neighbours neighbours;

  public LentOutputs(ServiceLink link, Endpoint endpoint, PluginCounters counters) {
    connection = link.connection;
    this.endpoint = endpoint;
    this.counters = counters;
    neighbours = new Neighbours(link.driver::neighbours, System::nanoTime);
  }

  @Override
  public Set<String> near(Collection<String> executors) {
    // Without a service there is nothing to borrow from, and the driver does not know this executor's.
    return connection.service() == null ? Collections.emptySet() : neighbours.of(executors);
  }

  @Override
  public boolean[] borrow(int shuffle, long[] maps) {
    NodeService service = connection.service();
    if (service != null) {
      try {
        return service.borrow(endpoint, shuffle, maps);
      } catch (ServiceException.Lost e) {
        LOG.debug("Faro: the node service was lost while map outputs of shuffle {} were borrowed", shuffle, e);
        connection.lost(service);
      } catch (Exception e) {
        LOG.debug("Faro: the node service does not lend map outputs of shuffle {}", shuffle, e);
      }
    }
    return new boolean[maps.length];
  }

  @Override
  public void read(long parts, long bytes) {
    counters.serviceLocalBlocks.add(parts);
    counters.serviceLocalBytes.add(bytes);
  }
}
