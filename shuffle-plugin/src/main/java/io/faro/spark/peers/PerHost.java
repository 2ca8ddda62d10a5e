package io.faro.spark.peers;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs work that connects to other hosts, for one host one after the other, for different hosts at the same time. A
 * connect to a host that is down blocks for minutes; so such a host takes one thread of the pool, however much work
 * there is for it, and delays no work for another host while the pool has a thread left.
 */
public final class PerHost {
  private static final Logger LOG = LoggerFactory.getLogger(PerHost.class);

  private final Executor threads;
  /** Work that waits, by host. A host is a key while a thread works for it. Guarded by this. */
  private final Map<String, Deque<Runnable>> waiting = new HashMap<>();

  public PerHost(Executor threads) {
    this.threads = threads;
  }

  /** Throws {@link RejectedExecutionException} when the pool was stopped. */
  public synchronized void execute(String host, Runnable work) {
    Deque<Runnable> others = waiting.get(host);
    if (others != null) {
      others.add(work);
      return;
    }
    threads.execute(() -> runAll(host, work));
    waiting.put(host, new ArrayDeque<>());
  }

  private void runAll(String host, Runnable first) {
    for (Runnable work = first; work != null; work = next(host)) {
      try {
        work.run();
      } catch (RuntimeException | Error e) {
        LOG.error("Work for host {} failed", host, e);
      }
    }
  }

  private synchronized Runnable next(String host) {
    Runnable work = waiting.get(host).poll();
    if (work == null) {
      waiting.remove(host);
    }
    return work;
  }
}
