package io.faro.spark.write;

import org.apache.spark.memory.MemoryManager;
import org.apache.spark.memory.MemoryMode;
import org.apache.spark.memory.TaskMemoryManager;

/**
 * Memory that a task may take although Spark's own writer would take none: what costs no cached block its place, and
 * no operator of the task a spill. Spark evicts blocks, and asks operators, as soon as a task wants more than is free.
 */
final class SpareMemory {
  /** That a task takes at most, and that it leaves free: others may take some after a look at it. */
  static final long MAX_BYTES = 8L << 20;
  /** Spark gives a task its share at least; four pages are at most that much of it, also if storage has its half. */
  private static final int PAGES = 4;

  private final MemoryManager all;
  private final TaskMemoryManager task;

  SpareMemory(MemoryManager all, TaskMemoryManager task) {
    this.all = all;
    this.task = task;
  }

  /** Returns whether there are {@code bytes} more for a writer that has {@code taken}. */
  boolean has(long bytes, long taken) {
    return taken + bytes <= MAX_BYTES
        && task.getMemoryConsumptionForThisTask() + bytes <= PAGES * task.pageSizeBytes()
        && isFree(bytes);
  }

  /** Returns whether so many bytes are free, and as many again as a task may take. */
  boolean isFree(long bytes) {
    // What storage could have at most is all that execution does not have.
    long free = task.getTungstenMemoryMode() == MemoryMode.OFF_HEAP
        ? all.maxOffHeapStorageMemory() - all.offHeapStorageMemoryUsed()
        : all.maxOnHeapStorageMemory() - all.onHeapStorageMemoryUsed();
    return free - bytes >= MAX_BYTES;
  }
}
