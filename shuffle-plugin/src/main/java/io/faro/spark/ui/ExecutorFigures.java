package io.faro.spark.ui;

import io.faro.spark.metrics.PeerFigures;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.util.kvstore.KVIndex;

/**
 * The counters of an executor's last report: an entry of the status store and an event of the event log. Event logs
 * have the names of this class and its fields, so these never change. The fields are public for Spark's JSON mapper. An
 * object is not changed after it is stored.
 */
public final class ExecutorFigures implements SparkListenerEvent {
  @KVIndex
  public String executor;
  public String host;
  /** The time of the report, in milliseconds since 1970. */
  public long time;
  /** Spark has removed the executor. */
  public boolean removed;
  /** The reason why Faro does not run there; empty: it does. Logs of older versions do not have it. */
  public String problem = "";
  /** The counters, by the names of docs/user/metrics.md. */
  public Map<String, Long> counters = new TreeMap<>();
  /** The peers with the longest requests, longest first. */
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
    copy.problem = problem;
    copy.counters = counters;
    copy.peers = peers;
    return copy;
  }
}
