package io.faro.spark.ui;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.util.kvstore.KVIndex;

/**
 * What an executor had counted when it last reported. An entry of the status store, and an event of the event log: the
 * name of this class and of its fields is what event logs have, so they do not change. Public fields: Spark's JSON
 * mapper reads and writes them. Not changed once it is stored.
 */
public final class ExecutorFigures implements SparkListenerEvent {
  @KVIndex
  public String executor;
  public String host;
  /** When the report came, in milliseconds since 1970. */
  public long time;
  /** Spark has removed the executor. */
  public boolean removed;
  /** By the names of docs/metrics.md. */
  public Map<String, Long> counters = new TreeMap<>();
  /** Those with the longest requests, longest first. */
  public List<PeerFigures> peers = new ArrayList<>();

  long counter(String name) {
    return counters.getOrDefault(name, 0L);
  }

  ExecutorFigures asRemoved() {
    ExecutorFigures copy = new ExecutorFigures();
    copy.executor = executor;
    copy.host = host;
    copy.time = time;
    copy.removed = true;
    copy.counters = counters;
    copy.peers = peers;
    return copy;
  }
}
