package io.faro.spark.fetch;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/**
 * Limits warnings: one line per topic in {@link #REPEAT_NANOS}, and at most {@link #PER_MINUTE} lines in a minute. The
 * next line of a topic has the number of suppressed ones.
 */
public final class RateLimitedLog {
  static final long REPEAT_NANOS = TimeUnit.MINUTES.toNanos(10);
  static final int PER_MINUTE = 20;

  private static final int MAX_TOPICS = 10_000;

  private final Consumer<String> out;
  private final LongSupplier nanos;
  private final Map<String, Topic> topics = new HashMap<>();
  private long windowStart;
  private int windowLines;

  public RateLimitedLog(Consumer<String> out, LongSupplier nanos) {
    this.out = out;
    this.nanos = nanos;
    this.windowStart = nanos.getAsLong();
  }

  void warn(String topic, String text) {
    long now = nanos.getAsLong();
    String line;
    synchronized (this) {
      if (topics.size() >= MAX_TOPICS) {
        topics.clear();
      }
      Topic known = topics.computeIfAbsent(topic, key -> new Topic());
      boolean repeats = known.logged && now - known.at < REPEAT_NANOS;
      if (now - windowStart >= TimeUnit.MINUTES.toNanos(1)) {
        windowStart = now;
        windowLines = 0;
      }
      if (repeats || windowLines >= PER_MINUTE) {
        known.suppressed++;
        return;
      }
      windowLines++;
      line = known.suppressed == 0 ? text : text + " (" + known.suppressed + " more since this was last logged)";
      known.logged = true;
      known.at = now;
      known.suppressed = 0;
    }
    out.accept(line);
  }

  private static final class Topic {
    boolean logged;
    long at;
    long suppressed;
  }
}
