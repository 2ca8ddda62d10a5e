package io.faro.spark.metrics;

import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/** The counters of the Java side; native code has the others. Names as in Spark's metrics system. */
public final class PluginCounters {
  /** Requests with blocks left to Spark's own fetch. */
  public final LongAdder fallbacks = new LongAdder();
  /** Blocks of these requests that were left to Spark's own fetch. */
  public final LongAdder fallbackBlocks = new LongAdder();
  /** Blocks reported to Spark as failed. */
  public final LongAdder failedBlocks = new LongAdder();
  /** Blocks that arrived after their request had ended; dropped. */
  public final LongAdder lateBlocks = new LongAdder();
  /** Requests that were cancelled because their task had ended. */
  public final LongAdder cancelledRequests = new LongAdder();
  /** Look-ups of endpoint cards. */
  public final LongAdder cardLookups = new LongAdder();
  /** Tasks' reads of a shuffle of which Faro's reader made the rows. */
  public final LongAdder rowReaders = new LongAdder();
  /** Tasks' reads of a shuffle of which Faro's reader joined blocks to streams. */
  public final LongAdder groupedReaders = new LongAdder();
  /** Map tasks whose rows Faro's writer wrote. */
  public final LongAdder rowWriters = new LongAdder();
  /** Row blocks that they made. */
  public final LongAdder rowBlocks = new LongAdder();

  /** Blocks that came from node services. */
  public final LongAdder serviceBlocks = new LongAdder();
  /** Bytes of these blocks. */
  public final LongAdder serviceBytes = new LongAdder();
  /** Blocks that were read from files that the node service of this host lends. */
  public final LongAdder serviceLocalBlocks = new LongAdder();
  /** Their bytes. */
  public final LongAdder serviceLocalBytes = new LongAdder();
  /** Blocks that came from executors after a node service was asked. */
  public final LongAdder executorBlocks = new LongAdder();
  /** Bytes of these blocks. */
  public final LongAdder executorBytes = new LongAdder();
  /** Blocks that came from copies on other hosts' node services. */
  public final LongAdder replicaBlocks = new LongAdder();
  /** Bytes of these blocks. */
  public final LongAdder replicaBytes = new LongAdder();
  /** Map outputs that the node service of this host keeps. */
  public final LongAdder outputsKept = new LongAdder();
  /** Map outputs that it should keep and does not. */
  public final LongAdder outputsNotKept = new LongAdder();

  /** Traffic by shuffle and by peer, for the Spark UI. */
  public final Traffic traffic = new Traffic();

  private final Map<Reason, LongAdder> byReason = new EnumMap<>(Reason.class);
  /** Tasks' reads of a shuffle that were left to Spark's reader. */
  private final Map<ReaderDeclineReason, LongAdder> declined = new EnumMap<>(ReaderDeclineReason.class);

  /** Map tasks that were left to Spark's writer. */
  private final Map<WriterDeclineReason, LongAdder> notWritten = new EnumMap<>(WriterDeclineReason.class);

  public PluginCounters() {
    for (Reason reason : Reason.values()) {
      byReason.put(reason, new LongAdder());
    }
    for (ReaderDeclineReason why : ReaderDeclineReason.values()) {
      declined.put(why, new LongAdder());
    }
    for (WriterDeclineReason why : WriterDeclineReason.values()) {
      notWritten.put(why, new LongAdder());
    }
  }

  /** Counts a request whose blocks are left to Spark's own fetch. */
  public void fellBack(Reason reason, int blocks) {
    fallbacks.increment();
    fallbackBlocks.add(blocks);
    byReason.get(reason).increment();
  }

  /** Counts a read that is left to Spark's reader. */
  public void declined(ReaderDeclineReason why) {
    declined.get(why).increment();
  }

  /** Counts a map task that is left to Spark's writer. */
  public void notWritten(WriterDeclineReason why) {
    notWritten.get(why).increment();
  }

  public Map<String, Long> snapshot() {
    Map<String, Long> all = new LinkedHashMap<>();
    all.put("fallbacks", fallbacks.sum());
    all.put("fallbackBlocks", fallbackBlocks.sum());
    all.put("failedBlocks", failedBlocks.sum());
    all.put("lateBlocks", lateBlocks.sum());
    all.put("cancelledRequests", cancelledRequests.sum());
    all.put("cardLookups", cardLookups.sum());
    // Not "fallbacks.<reason>": a sum over that prefix would count each fall-back twice.
    byReason.forEach((reason, count) -> all.put("fallbackReason." + reason.key, count.sum()));
    all.put("rowReaders", rowReaders.sum());
    all.put("groupedReaders", groupedReaders.sum());
    declined.forEach((why, count) -> all.put("sparkReaders." + why.key, count.sum()));
    all.put("rowWriters", rowWriters.sum());
    all.put("rowBlocks", rowBlocks.sum());
    SortCounters.addTo(all);
    all.put("serviceBlocks", serviceBlocks.sum());
    all.put("serviceBytes", serviceBytes.sum());
    all.put("serviceLocalBlocks", serviceLocalBlocks.sum());
    all.put("serviceLocalBytes", serviceLocalBytes.sum());
    all.put("executorBlocks", executorBlocks.sum());
    all.put("executorBytes", executorBytes.sum());
    all.put("replicaBlocks", replicaBlocks.sum());
    all.put("replicaBytes", replicaBytes.sum());
    all.put("serviceOutputs", outputsKept.sum());
    all.put("serviceOutputsRefused", outputsNotKept.sum());
    notWritten.forEach((why, count) -> all.put("sparkWriters." + why.key, count.sum()));
    return all;
  }
}
