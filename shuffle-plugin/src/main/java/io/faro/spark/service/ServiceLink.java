package io.faro.spark.service;

import io.faro.Nullable;
import io.faro.OutputResolver;
import io.faro.service.NodeService;
import java.io.File;
import java.util.Arrays;
import org.apache.spark.SparkEnv;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An executor's link to the node service of its host: registers, tells the driver, and connects again after the service
 * was restarted. {@link ServiceConnection} has its state, {@link HandOver} hands outputs over, {@link ReplicaLocations}
 * sees to copies on other hosts. Where anything fails, the executor serves its outputs by itself, as without a service.
 */
public final class ServiceLink {
  private static final Logger LOG = LoggerFactory.getLogger(ServiceLink.class);
  /** A daemon that is killed leaves it. */
  private static final String SOCKET = "faro-serve.sock";
  /** Deadline of one message to the service. */
  private static final long TIMEOUT_MILLIS = 5_000;
  private static final long PAUSE_MILLIS = 5_000;
  /** Time between tries to connect to a service that may come back soon. */
  private static final long RETURN_PAUSE_MILLIS = 500;
  /** The driver may take its first executor before it takes messages. */
  private static final int START_TRIES = 20;
  private static final long START_PAUSE_MILLIS = 250;

  /** Gives Spark's secret, to be overwritten by the caller; null if Spark does not authenticate. */
  public interface Secret {
    @Nullable byte[] get() throws Exception;
  }

  private final String directory;
  private final SparkEnv env;
  private final boolean sealed;
  private final Secret secret;
  public final DriverLink driver;
  /** The application's node services, as this executor knows them. */
  public final ServiceHosts hosts;
  public final HandOver outputs;
  final ServiceConnection connection = new ServiceConnection();
  private final ReplicaLocations copies;
  // The following fields are used only by the thread that connects.
  private boolean awaitsEnd;
  /** The service's card when it was last there. */
  private byte[] card = {};

  /** {@code files} finds map outputs of this executor; {@code kept}, {@code notKept}: count them. */
  public ServiceLink(String directory, SparkEnv env, boolean sealed, Secret secret, ServiceHosts hosts,
      OutputResolver files, Runnable kept, Runnable notKept) {
    this.directory = directory;
    this.env = env;
    this.sealed = sealed;
    this.secret = secret;
    this.driver = new DriverLink(env);
    this.hosts = hosts;
    UnkeptOutputs unkept = new UnkeptOutputs(driver::unkept, UnkeptOutputs::thisTaskIsKilled);
    this.outputs = new HandOver(connection, unkept, files, kept, notKept);
    this.copies = new ReplicaLocations(connection, driver, hosts);
  }

  /** Connects, on a thread of its own. */
  public void start() {
    connection.begin();
    thread("faro-service", this::run).start();
    if (copies.wanted()) {
      thread("faro-service-hosts", copies::followHosts).start();
    }
  }

  private static Thread thread(String name, Runnable work) {
    Thread thread = new Thread(work, name);
    thread.setContextClassLoader(ServiceLink.class.getClassLoader());
    thread.setDaemon(true);
    return thread;
  }

  private void run() {
    byte[] token = null;
    int tries = 0;
    try {
      while (!connection.isStopped()) {
        try {
          token = token == null ? driver.token() : token;
        } catch (Exception e) {
          driverSilent(++tries, e);
          continue;
        }
        try {
          connected(connect(token));
        } catch (Exception e) {
          connection.absent(e, new File(directory, SOCKET).exists());
        }
        awaitLoss();
      }
    } catch (InterruptedException e) {
      LOG.debug("Faro: the link to the node service ends", e);
    } finally {
      if (token != null) {
        Arrays.fill(token, (byte) 0);
      }
    }
  }

  private void driverSilent(int tries, Exception e) throws InterruptedException {
    if (tries < START_TRIES) {
      connection.pause(START_PAUSE_MILLIS);
    } else {
      connection.absent(e, false);
      connection.pause(PAUSE_MILLIS);
    }
  }

  private NodeService connect(byte[] token) throws Exception {
    byte[] sparks = secret.get();
    try {
      return NodeService.connect(
          directory, env.conf().getAppId(), env.executorId(), sealed, token, sparks, TIMEOUT_MILLIS);
    } finally {
      if (sparks != null) {
        Arrays.fill(sparks, (byte) 0);
      }
    }
  }

  private void connected(NodeService now) throws Exception {
    try {
      driver.kept(card, now.card());
      card = now.card();
    } catch (Exception e) {
      now.close();
      throw e;
    }
    if (!connection.open(now)) {
      now.close();
      return;
    }
    if (!awaitsEnd) {
      awaitsEnd = true;
      thread("faro-service-end", this::awaitEnd).start();
    }
    copies.tellAll(now);
    LOG.info("Faro: the service at {} keeps this executor's map outputs", directory);
  }

  /** Returns when a connection is to be made. */
  private void awaitLoss() throws InterruptedException {
    // An executor that hands nothing over finds here that the service was restarted. Readers need its new card.
    while (connection.isConnected()) {
      outputs.handOverAgain();
      if (copies.wanted()) {
        copies.ask();
      }
      connection.awaitLoss(PAUSE_MILLIS);
    }
    connection.lost(connection.service());
    connection.pause(connection.isReturning() ? RETURN_PAUSE_MILLIS : PAUSE_MILLIS);
  }

  /** Tells the service when the application ends. */
  private void awaitEnd() {
    while (!connection.isStopped()) {
      try {
        driver.awaitEnd();
      } catch (Exception e) {
        // This comes also when Spark's RPC has waited for long enough.
        LOG.trace("Faro: the driver has not said that the application ends", e);
        try {
          connection.pause(START_PAUSE_MILLIS);
        } catch (InterruptedException interrupted) {
          return;
        }
        continue;
      }
      NodeService now = connection.service();
      try {
        if (now != null) {
          now.end();
        }
      } catch (Exception e) {
        LOG.debug("Faro: the service does not know that the application ends", e);
      }
      return;
    }
  }

  /** Whether the service has taken this executor, and the connection to it stands. */
  public boolean isConnected() {
    return connection.isConnected();
  }

  /** Copies of outputs of this host that other services do not have yet; asked every few seconds. */
  public long replicasBehind() {
    return copies.behind();
  }

  public void stop() {
    connection.stop();
  }
}
