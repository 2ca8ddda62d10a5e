package io.faro.spark;

import io.faro.spark.ui.Traffic;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/** What the Java side counts; the native side counts the rest. Names as in Spark's metrics system. */
final class PluginCounters {
  /** Requests of which blocks were left to Spark's own fetch. */
  final LongAdder fallbacks = new LongAdder();
  /** Those blocks. */
  final LongAdder fallbackBlocks = new LongAdder();
  /** Blocks reported as failed, because nothing else was allowed. */
  final LongAdder failedBlocks = new LongAdder();
  /** Blocks that came after their request had been given up, and were dropped. */
  final LongAdder lateBlocks = new LongAdder();
  /** Endpoint cards asked for. */
  final LongAdder cardLookups = new LongAdder();

  /** By shuffle and by peer, for the Spark UI. */
  final Traffic traffic = new Traffic();

  private final Map<Reason, LongAdder> byReason = new EnumMap<>(Reason.class);

  PluginCounters() {
    for (Reason reason : Reason.values()) {
      byReason.put(reason, new LongAdder());
    }
  }

  void fellBack(Reason reason, int blocks) {
    fallbacks.increment();
    fallbackBlocks.add(blocks);
    byReason.get(reason).increment();
  }

  Map<String, Long> snapshot() {
    Map<String, Long> all = new LinkedHashMap<>();
    all.put("fallbacks", fallbacks.sum());
    all.put("fallbackBlocks", fallbackBlocks.sum());
    all.put("failedBlocks", failedBlocks.sum());
    all.put("lateBlocks", lateBlocks.sum());
    all.put("cardLookups", cardLookups.sum());
    // Not "fallbacks.<reason>": a sum over that prefix would count each fall-back twice.
    byReason.forEach((reason, count) -> all.put("fallbackReason." + reason.key, count.sum()));
    return all;
  }
}
