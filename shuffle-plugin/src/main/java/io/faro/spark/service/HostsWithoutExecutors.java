package io.faro.spark.service;

import io.faro.Nullable;
import io.faro.service.NodeService;
import java.util.Iterator;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tells the node services of hosts where the application has no executor any more what executors tell the service of
 * their own host: that shuffles were removed, and that the application has ended. The driver does it itself, as there
 * may be no executor at all. To say it twice does no harm; a service that does not get it removes the outputs when
 * the application was idle for as long as its {@code --idle}.
 */
final class HostsWithoutExecutors {
  /** Tells services, and returns how many have accepted it. */
  interface ControlSender {
    int tell(byte[][] cards, int[] removed, boolean ended) throws Exception;
  }

  private static final Logger LOG = LoggerFactory.getLogger(HostsWithoutExecutors.class);
  /** Shuffles that may wait to be sent. Of further ones outputs stay until the application has ended. */
  private static final int MAX_WAITING = 65_536;

  private final Supplier<byte[][]> cards;
  private final ControlSender sender;
  // All that follows is guarded by this.
  private final Set<Integer> removed = new TreeSet<>();
  private boolean ended;
  /** Null until there is something to say. */
  @Nullable private Thread thread;

  /** {@code cards}: of the services to tell, when it is asked. */
  HostsWithoutExecutors(Supplier<byte[][]> cards, ControlSender sender) {
    this.cards = cards;
    this.sender = sender;
  }

  /** A shuffle was removed. Does not wait. */
  synchronized void removed(int shuffle) {
    if (!ended && cards.get().length > 0 && removed.size() < MAX_WAITING) {
      removed.add(shuffle);
      wake();
    }
  }

  /** The application has ended. Only the first call counts. Does not wait. */
  synchronized void ended() {
    if (!ended) {
      ended = true;
      if (thread != null || cards.get().length > 0) {
        wake();
      }
    }
  }

  private void wake() {
    if (thread == null) {
      thread = new Thread(this::run, "faro-empty-hosts");
      thread.setContextClassLoader(HostsWithoutExecutors.class.getClassLoader());
      thread.setDaemon(true);
      thread.start();
    }
    notifyAll();
  }

  /** Waits after {@link #ended} until services were told, up to {@code millis}. */
  void awaitEnd(long millis) throws InterruptedException {
    Thread running;
    synchronized (this) {
      running = thread;
    }
    if (running != null) {
      running.join(millis);
    }
  }

  private void run() {
    try {
      boolean last = false;
      while (!last) {
        int[] some;
        synchronized (this) {
          while (removed.isEmpty() && !ended) {
            wait();
          }
          last = ended;
          // All outputs go with the application.
          some = last ? new int[0] : take();
        }
        tell(some, last);
      }
    } catch (InterruptedException e) {
      LOG.debug("Faro: node services of hosts without executors get no more commands", e);
    }
  }

  private int[] take() {
    int[] some = new int[Math.min(removed.size(), NodeService.MAX_SHUFFLES)];
    Iterator<Integer> all = removed.iterator();
    for (int i = 0; i < some.length; i++) {
      some[i] = all.next();
      all.remove();
    }
    return some;
  }

  private void tell(int[] some, boolean last) {
    byte[][] to = cards.get();
    if (to.length == 0) {
      return;
    }
    try {
      int accepted = sender.tell(to, some, last);
      LOG.debug("Faro: {} of {} node services of hosts without executors know that {}", accepted, to.length,
          last ? "the application has ended" : some.length + " shuffles were removed");
    } catch (Exception | LinkageError e) {
      LOG.debug("Faro: node services of hosts without executors keep map outputs until the application "
          + "was idle for long enough", e);
    }
  }
}
