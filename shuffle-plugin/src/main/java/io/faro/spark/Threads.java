package io.faro.spark;

import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** The threads of one executor: daemons all, few, and none while there is nothing to do. */
final class Threads {
  /** Asks peers for their cards; each may be held by a peer that does not answer. */
  final ThreadPoolExecutor rendezvous = pool("faro-rendezvous", 4);
  /** Calls Spark's own fetch, which may be held by a connect. */
  final ThreadPoolExecutor fallback = pool("faro-fallback", 8);
  /** Writes blocks to files. */
  final ThreadPoolExecutor files = pool("faro-files", 2);
  final ScheduledThreadPoolExecutor timer = new ScheduledThreadPoolExecutor(1, named("faro-timer"));

  private static ThreadPoolExecutor pool(String name, int size) {
    ThreadPoolExecutor pool =
        new ThreadPoolExecutor(size, size, 30, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), named(name));
    pool.allowCoreThreadTimeOut(true);
    return pool;
  }

  private static ThreadFactory named(String name) {
    AtomicInteger number = new AtomicInteger();
    return work -> daemon(name + "-" + number.getAndIncrement(), work);
  }

  static Thread daemon(String name, Runnable work) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    return thread;
  }

  /** What is queued still runs. */
  void stop() {
    timer.shutdownNow();
    rendezvous.shutdown();
    fallback.shutdown();
    files.shutdown();
  }
}
