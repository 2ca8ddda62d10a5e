package io.faro.spark.service;

import io.faro.OutputFiles;
import io.faro.service.NodeService;
import io.faro.service.ServiceException;
import java.util.concurrent.TimeoutException;
import org.apache.spark.SparkEnv;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Hands an executor's map outputs over to the node service of its host, on the threads of their tasks. Where that
 * fails, the executor serves the output by itself, and the driver gets to know that it does not outlive the executor.
 */
final class HandOver {
  private static final Logger LOG = LoggerFactory.getLogger(HandOver.class);

  private final ServiceConnection connection;
  private final DriverLink driver;
  private final Runnable kept;
  private final Runnable notKept;
  /** Guarded by this. */
  private boolean toldDriver;

  /** {@code kept}, {@code notKept}: count map outputs. */
  HandOver(ServiceConnection connection, DriverLink driver, Runnable kept, Runnable notKept) {
    this.connection = connection;
    this.driver = driver;
    this.kept = kept;
    this.notKept = notKept;
  }

  /**
   * Hands over an output that is committed, and waits for the service's answer. If the service goes meanwhile, its
   * return is waited for, and the output is handed over once more.
   */
  void handOver(int shuffleId, long mapId, OutputFiles files) {
    try {
      try {
        handOverOnce(shuffleId, mapId, files);
      } catch (ServiceException.Lost e) {
        LOG.debug("Faro: the node service was lost, map output {}/{} is handed over once more", shuffleId, mapId, e);
        handOverOnce(shuffleId, mapId, files);
      }
      kept.run();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      failed(shuffleId, mapId, e);
    } catch (Exception e) {
      failed(shuffleId, mapId, e);
    }
  }

  private void handOverOnce(int shuffleId, long mapId, OutputFiles files) throws Exception {
    NodeService now = connection.await();
    if (now == null) {
      throw new TimeoutException("there is no connection to the service");
    }
    try {
      now.handOver(shuffleId, mapId, files);
    } catch (ServiceException.Lost e) {
      connection.lost(now);
      throw e;
    }
  }

  private void failed(int shuffleId, long mapId, Exception e) {
    notKept.run();
    LOG.debug("Faro: map output {}/{} is not kept by the service", shuffleId, mapId, e);
    connection.warn(e);
    synchronized (this) {
      if (toldDriver) {
        return;
      }
      toldDriver = true;
    }
    notKept(driver, e.toString());
  }

  private static void notKept(DriverLink driver, String why) {
    try {
      driver.notKept(why);
    } catch (Exception e) {
      LOG.debug("Faro: the driver does not know that map outputs are not kept", e);
    }
  }

  /** No service keeps the outputs of this executor. */
  static void notKept(SparkEnv env, String why) {
    notKept(new DriverLink(env), why);
  }

  /** A shuffle was removed: the service need not keep its outputs. */
  void forget(int shuffleId) {
    NodeService now = connection.service();
    try {
      if (now != null) {
        now.forget(shuffleId);
      }
    } catch (ServiceException.Lost e) {
      connection.lost(now);
    } catch (Exception e) {
      LOG.debug("Faro: the service keeps the outputs of shuffle {} until the application ends", shuffleId, e);
    }
  }
}
