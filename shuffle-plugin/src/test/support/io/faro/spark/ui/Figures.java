package io.faro.spark.ui;

import io.faro.Fabric;
import io.faro.spark.metrics.PeerFigures;
import io.faro.spark.metrics.Report;
import io.faro.spark.metrics.RequestCounters;
import io.faro.spark.metrics.Traffic;
import java.util.Map;
import java.util.TreeMap;

/** Figures for tests. */
public final class Figures {
  private Figures() {}

  /** Pairs of a name and a value. */
  public static Map<String, Long> counters(Object... pairs) {
    Map<String, Long> counters = new TreeMap<>();
    for (int i = 0; i < pairs.length; i += 2) {
      counters.put((String) pairs[i], ((Number) pairs[i + 1]).longValue());
    }
    return counters;
  }

  public static Report report(String executor, long number, Object... pairs) {
    Report report = new Report();
    report.executor = executor;
    report.host = "host-" + executor;
    report.number = number;
    report.counters = counters(pairs);
    return report;
  }

  static ExecutorFigures executor(String executor, Object... pairs) {
    ExecutorFigures figures = new ExecutorFigures();
    figures.executor = executor;
    figures.host = "host-" + executor;
    figures.counters = counters(pairs);
    return figures;
  }

  static ShuffleFigures shuffle(int id, Object... pairs) {
    ShuffleFigures figures = new ShuffleFigures();
    figures.shuffle = id;
    figures.counters = counters(pairs);
    return figures;
  }

  static ServiceFigures service(String host, long blocks, long bytes) {
    ServiceFigures figures = new ServiceFigures();
    figures.host = host;
    figures.counters = counters(Traffic.SERVICE_BLOCKS, blocks, Traffic.SERVICE_BYTES, bytes);
    return figures;
  }

  public static PeerFigures peer(String name, long slowestNanos) {
    PeerFigures peer = new PeerFigures();
    peer.peer = name;
    peer.requests = 2;
    peer.nanos = slowestNanos;
    peer.slowestNanos = slowestNanos;
    return peer;
  }

  public static RequestCounters delivered(Fabric fabric, long... lengths) {
    RequestCounters delivered = new RequestCounters();
    for (long length : lengths) {
      delivered.block(fabric, length, true);
    }
    return delivered;
  }
}
