package io.faro.spark;

import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** The threads of one executor: daemons, and in pools that end idle threads after 30 s. */
final class Threads {
  /** Hosts that may hang at the same time, see {@code PerHost}. */
  private static final int HOSTS = 64;

  /** Look up peers' cards; a look-up blocks while it connects. */
  final ThreadPoolExecutor cards = pool("faro-cards", HOSTS);
  /** Call Spark's own fetch, which blocks while it connects. */
  final ThreadPoolExecutor fallback = pool("faro-fallback", HOSTS);
  /** Writes blocks to files. */
  final ThreadPoolExecutor files = pool("faro-files", 2);
  final ScheduledThreadPoolExecutor timer = new ScheduledThreadPoolExecutor(1, named("faro-timer"));

  static ThreadPoolExecutor pool(String name, int size) {
    ThreadPoolExecutor pool =
        new ThreadPoolExecutor(size, size, 30, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), named(name));
    pool.allowCoreThreadTimeOut(true);
    return pool;
  }

  private static ThreadFactory named(String name) {
    AtomicInteger number = new AtomicInteger();
    return work -> daemon(name + "-" + number.getAndIncrement(), work);
  }

  /** The thread has the plug-in's class loader; otherwise it keeps that of the task which happens to start it. */
  static Thread daemon(String name, Runnable work) {
    Thread thread = new Thread(work, name);
    thread.setContextClassLoader(Threads.class.getClassLoader());
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
