package io.faro.spark.service;

import io.faro.OutputFiles;
import io.faro.service.NodeService;
import io.faro.service.ServiceException;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.spark.SparkEnv;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An executor's link to the node service of its host: registers, tells the driver, hands map outputs over on the
 * threads of their tasks, and connects again after the service was restarted. Where anything fails, the executor serves
 * the output by itself, as without a service, and the driver gets to know that it does not outlive the executor.
 *
 * <pre>
 *   STARTING -- registered --> CONNECTED -- a message failed --> LOST -- registered --> CONNECTED
 *   STARTING -- no service --> LOST                              any state -- stop --> STOPPED
 * </pre>
 */
public final class ServiceLink {
  private static final Logger LOG = LoggerFactory.getLogger(ServiceLink.class);
  /** Deadline of one message to the service. */
  private static final long TIMEOUT_MILLIS = 5_000;
  /** Maximum wait of the first outputs for STARTING to end. */
  private static final long START_MILLIS = 10_000;
  private static final long PAUSE_MILLIS = 5_000;
  /** Maximum wait of outputs for a service that is not there: a supervisor starts it again within seconds. */
  private static final long RETURN_MILLIS = 10_000;
  /** Between tries to connect to it meanwhile. */
  private static final long RETURN_PAUSE_MILLIS = 500;
  /** The driver may take its first executor before it takes messages. */
  private static final int START_TRIES = 20;
  private static final long START_PAUSE_MILLIS = 250;

  private enum State { STARTING, CONNECTED, LOST, STOPPED }

  /** Gives Spark's secret, to be overwritten by the caller; {@code null}: Spark does not authenticate. */
  public interface Secret {
    byte[] get() throws Exception;
  }

  private final String directory;
  private final SparkEnv env;
  private final boolean sealed;
  private final Secret secret;
  private final DriverLink driver;
  private final ServiceHosts hosts;
  private final Runnable kept;
  private final Runnable notKept;
  // All that follows is guarded by this.
  private State state = State.STARTING;
  /** In CONNECTED. */
  private NodeService service;
  /** In LOST: until when the service is waited for, as {@code System.nanoTime}; {@code null}: it refused. */
  private Long returnsBy;
  private boolean toldDriver;
  private boolean warned;
  private boolean watches;
  /** Copies of outputs of this host that other services do not have yet, as its service said last. */
  private long behind;
  /** The service's card when it was last there. Only of the thread that connects. */
  private byte[] card = {};

  /** {@code kept}, {@code notKept}: count map outputs. */
  public ServiceLink(String directory, SparkEnv env, boolean sealed, Secret secret, ServiceHosts hosts,
      Runnable kept, Runnable notKept) {
    this.directory = directory;
    this.env = env;
    this.sealed = sealed;
    this.secret = secret;
    this.driver = new DriverLink(env);
    this.hosts = hosts;
    this.kept = kept;
    this.notKept = notKept;
  }

  public DriverLink driver() {
    return driver;
  }

  /** Connects, on a thread of its own. */
  public void start() {
    synchronized (this) {
      // The service may be about to start, or to start again.
      returnsBy = returnDeadline();
    }
    thread("faro-service", this::run).start();
    if (hosts.replicas() > 0) {
      thread("faro-service-hosts", this::watchHosts).start();
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
      while (!isStopped()) {
        try {
          token = token == null ? driver.token() : token;
        } catch (Exception e) {
          driverSilent(++tries, e);
          continue;
        }
        try {
          connected(connect(token));
        } catch (Exception e) {
          absent(e);
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
    synchronized (this) {
      if (state == State.STOPPED) {
        now.close();
        return;
      }
      service = now;
      state = State.CONNECTED;
      warned = false;
      notifyAll();
      if (!watches) {
        watches = true;
        thread("faro-service-end", this::awaitEnd).start();
      }
    }
    tell(now, hosts.all());
    LOG.info("Faro: the service at {} keeps this executor's map outputs", directory);
  }

  /** Tells the service of this host which others there are: it copies from them, and they from it. */
  private void tell(NodeService now, Map<Integer, byte[]> cards) {
    if (hosts.replicas() == 0) {
      return;
    }
    try {
      int size = hosts.size();
      for (Map.Entry<Integer, byte[]> one : cards.entrySet()) {
        now.host(hosts.replicas(), one.getKey(), size, one.getValue());
      }
    } catch (ServiceException.Lost e) {
      LOG.debug("Faro: the node service was lost, and is told of other hosts when it has come back", e);
      lost(now);
    } catch (Exception e) {
      LOG.debug("Faro: the node service does not take the list of other hosts", e);
    }
  }

  /** Takes the driver's list of services whenever it has changed. */
  private void watchHosts() {
    try {
      while (!isStopped()) {
        try {
          byte[] changes = driver.hostsAfter(hosts.version());
          if (changes.length == 0) {
            return;
          }
          Map<Integer, byte[]> cards = hosts.take(changes);
          NodeService now;
          synchronized (this) {
            now = service;
          }
          if (now != null) {
            tell(now, cards);
          }
        } catch (Exception e) {
          // Also when Spark's RPC has waited for long enough.
          LOG.trace("Faro: the driver has not said which node services there are", e);
          pause(START_PAUSE_MILLIS);
        }
      }
    } catch (InterruptedException e) {
      LOG.debug("Faro: the list of node services is not followed any more", e);
    }
  }

  /** Whether the service has taken this executor, and the connection to it stands. */
  public synchronized boolean isConnected() {
    return state == State.CONNECTED && service.isConnected();
  }

  /** Copies of outputs of this host that other services do not have yet; asked every few seconds. */
  public synchronized long replicasBehind() {
    return state == State.CONNECTED ? behind : 0;
  }

  private void driverSilent(int tries, Exception e) throws InterruptedException {
    if (tries < START_TRIES) {
      pause(START_PAUSE_MILLIS);
    } else {
      absent(e);
      pause(PAUSE_MILLIS);
    }
  }

  private void absent(Exception e) {
    synchronized (this) {
      state = state == State.STOPPED ? state : State.LOST;
      if (!(e instanceof ServiceException.Lost)) {
        // It would refuse the next try too.
        returnsBy = null;
      }
      notifyAll();
      if (isReturning()) {
        LOG.debug("Faro: the node service is waited for", e);
        return;
      }
    }
    warn(e);
  }

  private void warn(Exception e) {
    synchronized (this) {
      if (warned || state == State.STOPPED) {
        return;
      }
      warned = true;
    }
    LOG.warn("Faro: no service keeps this executor's map outputs, they are lost with it: {}", e.toString());
    LOG.debug("Faro: no node service", e);
  }

  private static long returnDeadline() {
    return System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(RETURN_MILLIS);
  }

  private synchronized boolean isStopped() {
    return state == State.STOPPED;
  }

  private synchronized void pause(long millis) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
    for (long left = millis; left > 0 && state != State.STOPPED; left = millisTo(end)) {
      wait(left);
    }
  }

  private static long millisTo(long end) {
    return TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
  }

  /** Returns when a connection is to be made. */
  private void awaitLoss() throws InterruptedException {
    // An executor that hands nothing over finds here that the service was restarted. Readers need its new card.
    while (isConnected()) {
      if (hosts.replicas() > 0) {
        askBehind();
      }
      synchronized (this) {
        if (state == State.CONNECTED) {
          wait(PAUSE_MILLIS);
        }
      }
    }
    synchronized (this) {
      if (state == State.CONNECTED) {
        lost(service);
      }
    }
    pause(isReturning() ? RETURN_PAUSE_MILLIS : PAUSE_MILLIS);
  }

  private void askBehind() {
    NodeService now;
    synchronized (this) {
      now = service;
    }
    try {
      long copies = now == null ? 0 : now.behind();
      synchronized (this) {
        behind = copies;
      }
    } catch (ServiceException.Lost e) {
      lost(now);
    } catch (Exception e) {
      LOG.debug("Faro: the node service does not say how many copies are missing", e);
    }
  }

  private synchronized boolean isReturning() {
    return state == State.LOST && returnsBy != null && millisTo(returnsBy) > 0;
  }

  /** Tells the service when the application ends. */
  private void awaitEnd() {
    while (!isStopped()) {
      try {
        driver.awaitEnd();
      } catch (Exception e) {
        // Also when Spark's RPC has waited for long enough.
        LOG.trace("Faro: the driver has not said that the application ends", e);
        try {
          pause(START_PAUSE_MILLIS);
        } catch (InterruptedException interrupted) {
          return;
        }
        continue;
      }
      NodeService now;
      synchronized (this) {
        now = service;
      }
      try {
        if (now != null) {
          now.end();
        }
      } catch (Exception e) {
        LOG.debug("Faro: the service was not told that the application ends", e);
      }
      return;
    }
  }

  /**
   * Hands over an output that is committed, and waits for the service's answer. If the service goes meanwhile, its
   * return is waited for, and the output is handed over once more.
   */
  public void handOver(int shuffleId, long mapId, OutputFiles files) {
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
    NodeService now = await();
    if (now == null) {
      throw new TimeoutException("there is no connection to the service");
    }
    try {
      now.handOver(shuffleId, mapId, files);
    } catch (ServiceException.Lost e) {
      lost(now);
      throw e;
    }
  }

  /** {@code null}: there is no connection. */
  private synchronized NodeService await() throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(START_MILLIS);
    for (long left = START_MILLIS; state == State.STARTING && left > 0; left = millisTo(end)) {
      wait(left);
    }
    while (isReturning()) {
      wait(Math.max(1, millisTo(returnsBy)));
    }
    return service;
  }

  private void failed(int shuffleId, long mapId, Exception e) {
    notKept.run();
    LOG.debug("Faro: map output {}/{} is not kept by the service", shuffleId, mapId, e);
    warn(e);
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
  public static void notKept(SparkEnv env, String why) {
    notKept(new DriverLink(env), why);
  }

  /** The connection to the service; {@code null}: there is none now. */
  synchronized NodeService service() {
    return service;
  }

  /** A message on that connection has failed in a way that ends it. */
  synchronized void lost(NodeService which) {
    if (service == which && state == State.CONNECTED) {
      state = State.LOST;
      returnsBy = returnDeadline();
      service.close();
      service = null;
      notifyAll();
    }
  }

  /** A shuffle was removed. */
  public void forget(int shuffleId) {
    NodeService now;
    synchronized (this) {
      now = service;
    }
    try {
      if (now != null) {
        now.forget(shuffleId);
      }
    } catch (ServiceException.Lost e) {
      lost(now);
    } catch (Exception e) {
      LOG.debug("Faro: the service keeps the outputs of shuffle {} until the application ends", shuffleId, e);
    }
  }

  public synchronized void stop() {
    state = State.STOPPED;
    if (service != null) {
      service.close();
      service = null;
    }
    notifyAll();
  }
}
