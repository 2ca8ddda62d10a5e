package io.faro.spark;

import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** The threads of one executor: daemons, and in pools that end idle threads after 30 s. */
final class Threads {
  /** Looks up peers' cards; a look-up blocks while a peer does not answer. */
  final ThreadPoolExecutor cards = pool("faro-cards", 4);
  /** Calls Spark's own fetch, which blocks while it connects. */
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

  /** Ends the threads after the queued work; drops timed work. */
  void stop() {
    timer.shutdownNow();
    cards.shutdown();
    fallback.shutdown();
    files.shutdown();
  }
}
