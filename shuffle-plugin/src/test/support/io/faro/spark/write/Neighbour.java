package io.faro.spark.write;

import io.faro.spark.write.RandomRows.Rows;
import java.util.Random;
import org.apache.spark.memory.MemoryConsumer;
import org.apache.spark.memory.TaskMemoryManager;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import scala.Product2;

/** Another consumer of a task's memory, as the operators below a shuffle are: takes memory and frees it at random. */
final class Neighbour extends MemoryConsumer {
  /** Reaction to Spark's request for memory. */
  enum OnSpill {
    NOTHING,
    FREES,
    /** It takes memory for what it goes on with, as Spark's sorters do. */
    FREES_AND_TAKES
  }

  private final Random random;
  private final long max;
  private final int every;
  private final OnSpill onSpill;

  /** {@code max}: bytes that it holds at most; {@code every}: it does something every so many rows. */
  Neighbour(TaskMemoryManager memory, long seed, long max, int every, OnSpill onSpill) {
    super(memory, memory.getTungstenMemoryMode());
    random = new Random(seed);
    this.max = max;
    this.every = every;
    this.onSpill = onSpill;
  }

  /** The rows; the neighbour acts between them. */
  Rows between(Rows rows) {
    return new Rows() {
      @Override
      public boolean hasNext() {
        return rows.hasNext();
      }

      @Override
      public Product2<Integer, UnsafeRow> next() {
        if (random.nextInt(every) == 0) {
          act();
        }
        return rows.next();
      }
    };
  }

  private void act() {
    if (getUsed() > 0 && random.nextInt(3) == 0) {
      free();
    } else {
      take((long) ((max - getUsed()) * random.nextDouble()));
    }
  }

  private void take(long bytes) {
    if (bytes > 0) {
      acquireMemory(bytes);
    }
  }

  void free() {
    freeMemory(getUsed());
  }

  @Override
  public long spill(long size, MemoryConsumer trigger) {
    if (onSpill == OnSpill.NOTHING || trigger == this) {
      return 0;
    }
    long freed = getUsed();
    free();
    if (onSpill == OnSpill.FREES_AND_TAKES) {
      take((long) (max * random.nextDouble()));
    }
    return freed - getUsed();
  }

  @Override
  public String toString() {
    return "a neighbour of at most " + max + " bytes every " + every + " rows, on spill: " + onSpill;
  }
}
