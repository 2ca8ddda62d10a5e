package io.faro.spark.service;

import io.faro.Nullable;
import io.faro.OutputFiles;
import io.faro.service.NodeService;
import io.faro.service.ServiceException;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The state of an executor's connection to the node service of its host. The thread of {@link ServiceLink} makes
 * connections; any thread may use the current one, wait for it, or find that it is lost.
 *
 * <pre>
 *   STARTING -- registered --> CONNECTED -- a message failed --> LOST -- registered --> CONNECTED
 *   STARTING -- no service --> LOST                              any state -- stop --> STOPPED
 * </pre>
 */
final class ServiceConnection implements HandOver.Service {
  private static final Logger LOG = LoggerFactory.getLogger(ServiceConnection.class);
  /** Maximum wait of the first outputs for STARTING to end. */
  private static final long START_MILLIS = 10_000;
  /** Maximum wait of outputs for a service that is not there: a supervisor starts it again within seconds. */
  private static final long RETURN_MILLIS = 10_000;

  private enum State { STARTING, CONNECTED, LOST, STOPPED }

  // All fields are guarded by this.
  private State state = State.STARTING;
  /** Null unless CONNECTED. */
  @Nullable private NodeService service;
  /** In LOST: until when the service may come soon, as {@code System.nanoTime}; null if it refused. */
  @Nullable private Long returnsBy;
  /** Why there is no connection. */
  private Exception absence = new ServiceException.Lost("this executor has not found its node service yet");
  /** Outputs wait for a service that was there: it is being started again. */
  private boolean wasThere;
  private boolean warned;

  /** A service that is not there from now on may be about to start. */
  synchronized void begin() {
    returnsBy = returnDeadline();
  }

  /** The service has taken this executor. False, with nothing changed: the link was stopped. */
  synchronized boolean open(NodeService now) {
    if (state == State.STOPPED) {
      return false;
    }
    service = now;
    state = State.CONNECTED;
    wasThere = true;
    warned = false;
    notifyAll();
    return true;
  }

  /** There is no service, or it has refused this executor. {@code isLeft}: it has left its socket. */
  void absent(Exception e, boolean isLeft) {
    synchronized (this) {
      state = state == State.STOPPED ? state : State.LOST;
      absence = e;
      wasThere |= isLeft;
      if (!(e instanceof ServiceException.Lost)) {
        // It would refuse the next try too.
        returnsBy = null;
      }
      notifyAll();
      if (isAwaited()) {
        LOG.debug("Faro: the node service is waited for", e);
        return;
      }
    }
    warn(e);
  }

  /** Logs that outputs are not kept, once for each connection. */
  @Override
  public void warn(Exception e) {
    synchronized (this) {
      if (warned || state == State.STOPPED) {
        return;
      }
      warned = true;
    }
    LOG.warn("Faro: no service keeps this executor's map outputs, they are lost with it: {}", why(e));
    LOG.debug("Faro: no node service", e);
  }

  /** What the service or native code says speaks for itself. */
  static String why(Exception e) {
    return e instanceof ServiceException && e.getMessage() != null ? e.getMessage() : e.toString();
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

  synchronized void stop() {
    state = State.STOPPED;
    if (service != null) {
      service.close();
      service = null;
    }
    notifyAll();
  }

  synchronized boolean isStopped() {
    return state == State.STOPPED;
  }

  /** Whether the service has taken this executor, and the connection to it stands. */
  synchronized boolean isConnected() {
    return state == State.CONNECTED && service.isConnected();
  }

  synchronized boolean isAwaited() {
    return wasThere && isReturning();
  }

  /** Whether the service was lost, or this executor started, a short time ago, so that it may be there soon. */
  synchronized boolean isReturning() {
    return state == State.LOST && returnsBy != null && millisTo(returnsBy) > 0;
  }

  /** The connection to the service; null while it is not made or lost. */
  @Nullable synchronized NodeService service() {
    return service;
  }

  /** Waits while the connection is being made or may come back; null if it does not. */
  @Nullable synchronized NodeService await() throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(START_MILLIS);
    for (long left = START_MILLIS; state == State.STARTING && left > 0; left = millisTo(end)) {
      wait(left);
    }
    while (isAwaited()) {
      wait(Math.max(1, millisTo(returnsBy)));
    }
    return service;
  }

  @Override
  public void handOver(int shuffleId, long mapId, OutputFiles files, boolean waits) throws Exception {
    NodeService now = waits ? await() : service();
    if (now == null) {
      throw absence();
    }
    try {
      now.handOver(shuffleId, mapId, files);
    } catch (ServiceException.Lost e) {
      lost(now);
      throw e;
    }
  }

  @Override
  public void forget(int shuffleId) throws Exception {
    NodeService now = service();
    if (now != null) {
      try {
        now.forget(shuffleId);
      } catch (ServiceException.Lost e) {
        lost(now);
        throw e;
      }
    }
  }

  private synchronized Exception absence() {
    return absence;
  }

  /** Waits for the connection to be lost, at most for that time. */
  synchronized void awaitLoss(long millis) throws InterruptedException {
    if (state == State.CONNECTED) {
      wait(millis);
    }
  }

  /** Waits for that time, or until the link is stopped. */
  synchronized void pause(long millis) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
    for (long left = millis; left > 0 && state != State.STOPPED; left = millisTo(end)) {
      wait(left);
    }
  }

  private static long returnDeadline() {
    return System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(RETURN_MILLIS);
  }

  private static long millisTo(long end) {
    return TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
  }
}
