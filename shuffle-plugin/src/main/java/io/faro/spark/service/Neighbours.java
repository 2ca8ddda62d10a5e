package io.faro.spark.service;

import io.faro.Nullable;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The executors whose outputs the node service of this host keeps, as the driver says. An executor tells the driver of
 * its service before the service has its first output, so of an executor with outputs there the answer is yes. It stays
 * so; a no is asked again after a while, as an executor may find a service late.
 */
final class Neighbours {
  private static final Logger LOG = LoggerFactory.getLogger(Neighbours.class);
  /** Executors come and go for months. */
  private static final int MAX_EXECUTORS = 65_536;
  static final long ASK_AGAIN_NANOS = TimeUnit.SECONDS.toNanos(30);

  /** Answers which of these executors have the same service as this one. */
  interface Question {
    Set<String> ask(List<String> executors) throws Exception;
  }

  private static final class Answer {
    final boolean near;
    final long nanos;

    Answer(boolean near, long nanos) {
      this.near = near;
      this.nanos = nanos;
    }
  }

  private final Question driver;
  private final LongSupplier nanos;
  /** By executor. Guarded by this. */
  private final Map<String, Answer> known = new LinkedHashMap<String, Answer>() {
    private static final long serialVersionUID = 1L;

    @Override
    protected boolean removeEldestEntry(Map.Entry<String, Answer> eldest) {
      return size() > MAX_EXECUTORS;
    }
  };

  Neighbours(Question driver, LongSupplier nanos) {
    this.driver = driver;
    this.nanos = nanos;
  }

  /** Those of these executors. The driver is asked without the lock: a task that knows its answers does not wait. */
  Set<String> of(Collection<String> executors) {
    long now = nanos.getAsLong();
    List<String> unknown = unknown(executors, now);
    if (!unknown.isEmpty()) {
      Set<String> near = ask(unknown);
      if (near != null) {
        learn(unknown, near, now);
      }
    }
    return near(executors);
  }

  private synchronized List<String> unknown(Collection<String> executors, long now) {
    List<String> unknown = new ArrayList<>();
    for (String executor : executors) {
      Answer answer = known.get(executor);
      if (answer == null || !answer.near && now - answer.nanos >= ASK_AGAIN_NANOS) {
        unknown.add(executor);
      }
    }
    return unknown;
  }

  /** A yes stays, where another task has got it meanwhile. */
  private synchronized void learn(List<String> executors, Set<String> near, long now) {
    for (String executor : executors) {
      Answer answer = new Answer(near.contains(executor), now);
      known.merge(executor, answer, (old, late) -> old.near ? old : late);
    }
  }

  private synchronized Set<String> near(Collection<String> executors) {
    Set<String> near = new HashSet<>();
    for (String executor : executors) {
      Answer answer = known.get(executor);
      if (answer != null && answer.near) {
        near.add(executor);
      }
    }
    return near;
  }

  /** Null if the task was killed, and nothing is known. */
  @Nullable private Set<String> ask(List<String> executors) {
    try {
      return driver.ask(executors);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return null;
    } catch (Exception e) {
      LOG.debug("Faro: the driver has not said whose outputs the node service of this host keeps", e);
    }
    return new HashSet<>();
  }
}
