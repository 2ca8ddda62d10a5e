package io.faro.spark.peers;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/** Time and threads in the hands of a test. */
public final class Steps implements Timer, LongSupplier {
  private long nanos = 1_000_000_000_000L;
  private final List<TimedAction> timed = new ArrayList<>();

  private static final class TimedAction {
    final long at;
    final Runnable action;

    TimedAction(long at, Runnable action) {
      this.at = at;
      this.action = action;
    }
  }

  /** Work that waits until the test runs it. */
  public static final class Queue implements Executor {
    public final Deque<Runnable> work = new ArrayDeque<>();
    public boolean stopped;

    @Override
    public void execute(Runnable command) {
      if (stopped) {
        throw new RejectedExecutionException("stopped");
      }
      work.add(command);
    }

    public void runAll() {
      while (!work.isEmpty()) {
        work.poll().run();
      }
    }
  }

  @Override
  public void after(long millis, Runnable action) {
    timed.add(new TimedAction(nanos + TimeUnit.MILLISECONDS.toNanos(millis), action));
  }

  @Override
  public long getAsLong() {
    return nanos;
  }

  public void pass(long duration, TimeUnit unit) {
    long end = nanos + unit.toNanos(duration);
    while (true) {
      TimedAction next = timed.stream().filter(t -> t.at <= end).min(Comparator.comparingLong(t -> t.at)).orElse(null);
      if (next == null) {
        break;
      }
      timed.remove(next);
      nanos = Math.max(nanos, next.at);
      next.action.run();
    }
    nanos = end;
  }
}
