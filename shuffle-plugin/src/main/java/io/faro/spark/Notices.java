package io.faro.spark;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/**
 * Warnings that a reader of the log can bear: the same matter once per {@link #REPEAT_NANOS}, and not more than
 * {@link #PER_MINUTE} different ones in a minute, whatever breaks. What is held back is counted and said with the next
 * line of its matter; the counters have it all.
 */
final class Notices {
  static final long REPEAT_NANOS = TimeUnit.MINUTES.toNanos(10);
  static final int PER_MINUTE = 20;

  private static final int MOST_MATTERS = 10_000;

  private final Consumer<String> out;
  private final LongSupplier nanos;
  private final Map<String, Matter> matters = new HashMap<>();
  private long windowStart;
  private int windowLines;

  Notices(Consumer<String> out, LongSupplier nanos) {
    this.out = out;
    this.nanos = nanos;
    this.windowStart = nanos.getAsLong();
  }

  void say(String matter, String text) {
    long now = nanos.getAsLong();
    String line;
    synchronized (this) {
      if (matters.size() >= MOST_MATTERS) {
        matters.clear();
      }
      Matter known = matters.computeIfAbsent(matter, key -> new Matter());
      boolean repeats = known.said && now - known.at < REPEAT_NANOS;
      if (now - windowStart >= TimeUnit.MINUTES.toNanos(1)) {
        windowStart = now;
        windowLines = 0;
      }
      if (repeats || windowLines >= PER_MINUTE) {
        known.heldBack++;
        return;
      }
      windowLines++;
      line = known.heldBack == 0 ? text : text + " (" + known.heldBack + " times more since this was last said)";
      known.said = true;
      known.at = now;
      known.heldBack = 0;
    }
    out.accept(line);
  }

  private static final class Matter {
    boolean said;
    long at;
    long heldBack;
  }
}
