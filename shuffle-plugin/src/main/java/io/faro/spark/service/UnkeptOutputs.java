package io.faro.spark.service;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BooleanSupplier;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * This executor's map outputs that no service keeps. The driver gets the list of their shuffles whenever it changes: it
 * grows with the first such output of a shuffle, and shrinks when a service has taken all of them, or the shuffle is
 * removed.
 */
public final class UnkeptOutputs {
  private static final Logger LOG = LoggerFactory.getLogger(UnkeptOutputs.class);
  /** Above it, outputs are not remembered one by one, and their shuffles stay in the list until they are removed. */
  static final int MAX_OUTPUTS = 65_536;

  /** Sends {@link UnkeptShuffles} to the driver. Does not wait. */
  interface Driver {
    void unkept(UnkeptShuffles shuffles) throws Exception;
  }

  /** One map output. */
  static final class Output {
    final int shuffle;
    final long map;

    Output(int shuffle, long map) {
      this.shuffle = shuffle;
      this.map = map;
    }
  }

  private final Driver driver;
  private final BooleanSupplier taskIsKilled;
  // Guarded by this.
  private final Map<Integer, Set<Long>> outputs = new LinkedHashMap<>();
  /** Shuffles with outputs that are not remembered. */
  private final Set<Integer> uncounted = new HashSet<>();
  private int size;
  private long number;
  private String why = "";

  UnkeptOutputs(Driver driver, BooleanSupplier taskIsKilled) {
    this.driver = driver;
    this.taskIsKilled = taskIsKilled;
  }

  /** Of an executor that has no link to a service. */
  public UnkeptOutputs(SparkEnv env) {
    this(new DriverLink(env)::unkept, UnkeptOutputs::thisTaskIsKilled);
  }

  /** Spark marks a task before it interrupts its thread. */
  static boolean thisTaskIsKilled() {
    TaskContext task = TaskContext.get();
    return task != null && task.isInterrupted();
  }

  /** Returns false for the output of a killed task: Spark does not use it, so it is not lost with the executor. */
  public boolean add(int shuffle, long map, String reason) {
    if (taskIsKilled.getAsBoolean()) {
      return false;
    }
    UnkeptShuffles changed = null;
    synchronized (this) {
      boolean isNew = !outputs.containsKey(shuffle);
      Set<Long> maps = outputs.computeIfAbsent(shuffle, id -> new LinkedHashSet<>());
      if (size >= MAX_OUTPUTS) {
        uncounted.add(shuffle);
      } else if (maps.add(map)) {
        size++;
      }
      if (isNew) {
        why = reason;
        changed = list();
      }
    }
    tell(changed);
    return true;
  }

  /** A service keeps the output now. Returns false if its shuffle was removed meanwhile. */
  boolean kept(int shuffle, long map) {
    UnkeptShuffles changed = null;
    synchronized (this) {
      Set<Long> maps = outputs.get(shuffle);
      if (maps == null || !maps.remove(map)) {
        return false;
      }
      size--;
      if (maps.isEmpty() && !uncounted.contains(shuffle)) {
        outputs.remove(shuffle);
        changed = list();
      }
    }
    tell(changed);
    return true;
  }

  /** The shuffle was removed. */
  public void removed(int shuffle) {
    UnkeptShuffles changed = null;
    synchronized (this) {
      Set<Long> maps = outputs.remove(shuffle);
      if (maps != null) {
        uncounted.remove(shuffle);
        size -= maps.size();
        changed = list();
      }
    }
    tell(changed);
  }

  /** A service refused the output again: others are tried before it. */
  synchronized void putLast(Output output) {
    Set<Long> maps = outputs.get(output.shuffle);
    if (maps != null && maps.remove(output.map)) {
      outputs.remove(output.shuffle);
      outputs.put(output.shuffle, maps);
      maps.add(output.map);
    }
  }

  synchronized List<Output> all() {
    List<Output> all = new ArrayList<>(size);
    outputs.forEach((shuffle, maps) -> maps.forEach(map -> all.add(new Output(shuffle, map))));
    return all;
  }

  private UnkeptShuffles list() {
    return new UnkeptShuffles(++number, outputs.keySet(), why);
  }

  private void tell(UnkeptShuffles changed) {
    if (changed == null) {
      return;
    }
    try {
      driver.unkept(changed);
    } catch (Exception e) {
      LOG.debug("Faro: the driver does not know which map outputs are not kept", e);
    }
  }
}
