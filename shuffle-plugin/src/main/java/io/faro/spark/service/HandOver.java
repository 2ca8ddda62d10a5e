package io.faro.spark.service;

import io.faro.OutputFiles;
import io.faro.OutputResolver;
import io.faro.service.ServiceException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Hands an executor's map outputs over to the node service of its host, on the threads of their tasks. Where that
 * fails, the executor serves the output by itself, the driver gets to know that it does not outlive the executor, and
 * it is handed over later, when there is a service that takes it.
 */
public final class HandOver {
  private static final Logger LOG = LoggerFactory.getLogger(HandOver.class);
  /** A service that refuses this many outputs of one pass has no place for the others either. */
  private static final int MAX_REFUSALS = 4;

  /** The service of this host. */
  interface Service {
    /** {@code waits}: for a service that may be there soon. Throws the reason why it does not keep the output. */
    void handOver(int shuffleId, long mapId, OutputFiles files, boolean waits) throws Exception;

    void forget(int shuffleId) throws Exception;

    /** Logs that outputs are not kept. */
    void warn(Exception e);
  }

  private final Service service;
  private final UnkeptOutputs unkept;
  private final OutputResolver files;
  private final Runnable kept;
  private final Runnable notKept;

  /** {@code kept}, {@code notKept}: count map outputs. */
  HandOver(Service service, UnkeptOutputs unkept, OutputResolver files, Runnable kept, Runnable notKept) {
    this.service = service;
    this.unkept = unkept;
    this.files = files;
    this.kept = kept;
    this.notKept = notKept;
  }

  /**
   * Hands over an output that is committed, and waits for the service's answer. If the service goes meanwhile, its
   * return is waited for, and the output is handed over once more.
   */
  public void handOver(int shuffleId, long mapId, OutputFiles output) {
    try {
      try {
        service.handOver(shuffleId, mapId, output, true);
      } catch (ServiceException.Lost e) {
        LOG.debug("Faro: the node service was lost, map output {}/{} is handed over once more", shuffleId, mapId, e);
        service.handOver(shuffleId, mapId, output, true);
      }
      kept.run();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      failed(shuffleId, mapId, e);
    } catch (Exception e) {
      failed(shuffleId, mapId, e);
    }
  }

  private void failed(int shuffleId, long mapId, Exception e) {
    LOG.debug("Faro: map output {}/{} is not kept by the service", shuffleId, mapId, e);
    if (unkept.add(shuffleId, mapId, ServiceConnection.why(e))) {
      notKept.run();
      service.warn(e);
    }
  }

  /** There is a service: it gets the outputs that were not handed over before, as long as it takes them. */
  void handOverAgain() {
    int refusals = 0;
    for (UnkeptOutputs.Output output : unkept.all()) {
      try {
        OutputFiles found = files.resolve(output.shuffle, output.map);
        if (found == null) {
          // It was moved away or removed: nobody reads it here.
          unkept.kept(output.shuffle, output.map);
          continue;
        }
        service.handOver(output.shuffle, output.map, found, false);
        kept.run();
        if (!unkept.kept(output.shuffle, output.map)) {
          service.forget(output.shuffle);
        }
      } catch (ServiceException.Lost e) {
        LOG.debug("Faro: the node service was lost again", e);
        return;
      } catch (Exception e) {
        LOG.debug("Faro: the service does not keep map output {}/{} yet", output.shuffle, output.map, e);
        unkept.putLast(output);
        if (++refusals == MAX_REFUSALS) {
          return;
        }
      }
    }
  }

  /** A shuffle was removed: the service need not keep its outputs. */
  public void forget(int shuffleId) {
    unkept.removed(shuffleId);
    try {
      service.forget(shuffleId);
    } catch (Exception e) {
      LOG.debug("Faro: the service keeps the outputs of shuffle {} until the application ends", shuffleId, e);
    }
  }
}
