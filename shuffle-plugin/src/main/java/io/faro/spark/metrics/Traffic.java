package io.faro.spark.metrics;

import io.faro.Fabric;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/**
 * Counts the fetches of one executor, by shuffle, by peer and by node service; the counters are sums over each. Updated
 * once per request, not per block. All maps are bounded: if the driver does not ask, the newest shuffles and services
 * and the slowest peers are kept. The counters are not affected.
 */
public final class Traffic {
  /** Prefix of the counters of fabrics. */
  public static final String REMOTE = "remote";
  public static final String REQUESTS = "requests";
  public static final String FALLBACK_BLOCKS = "fallbackBlocks";
  /** Nanoseconds; a maximum, while all other figures of a shuffle are sums. */
  public static final String SLOWEST = "slowestRequestNanos";
  /** Nanoseconds of all requests; many are under way at a time. */
  public static final String REQUEST_NANOS = "requestNanos";
  /** Nanoseconds that tasks waited for remote blocks, as Spark counts them; the driver adds it. */
  public static final String TASK_WAIT = "taskWaitNanos";

  /** Blocks that a host's node service delivered. */
  public static final String SERVICE_BLOCKS = "serviceBlocks";
  public static final String SERVICE_BYTES = "serviceBytes";
  /** Blocks of a host's executors that came from copies on other hosts. */
  public static final String REPLICA_BLOCKS = "replicaBlocks";
  public static final String REPLICA_BYTES = "replicaBytes";

  static final int MAX_SHUFFLES = 256;
  static final int MAX_SERVICES = 1_024;
  static final int MAX_PEERS = 1_024;

  /** The figures of each shuffle that were not drained yet. */
  private final Map<Integer, Map<String, Long>> shuffles = new LinkedHashMap<>();
  private final Map<String, PeerFigures> peers = new HashMap<>();
  /** The figures of each host's node service that were not drained yet. */
  private final Map<String, Map<String, Long>> services = new LinkedHashMap<>();

  /** A request to {@code peer} for blocks of {@code shuffle} is over, after {@code nanos}. */
  public synchronized void ended(int shuffle, String peer, RequestCounters delivered, long nanos) {
    Map<String, Long> figures = shuffle(shuffle);
    PeerFigures there = peer(peer);
    figures.merge(REQUESTS, 1L, Long::sum);
    figures.merge(REQUEST_NANOS, nanos, Long::sum);
    figures.merge(SLOWEST, nanos, Math::max);
    for (Fabric fabric : Fabric.values()) {
      long blocks = delivered.blocks(fabric);
      if (blocks + delivered.bytes(fabric) != 0 && fabric != Fabric.NONE) {
        String name = fabric.name().toLowerCase(Locale.ROOT);
        figures.merge("remoteBlocks." + name, blocks, Long::sum);
        figures.merge("remoteBytes." + name, delivered.bytes(fabric), Long::sum);
      }
      there.blocks += blocks;
      there.bytes += delivered.bytes(fabric);
    }
    there.requests++;
    there.nanos += nanos;
    there.slowestNanos = Math.max(there.slowestNanos, nanos);
  }

  /** A request to the node service of {@code host} is over. */
  public void fromService(String host, RequestCounters delivered) {
    fromService(host, delivered, SERVICE_BLOCKS, SERVICE_BYTES);
  }

  /** A request for copies of outputs of {@code host}'s executors is over. */
  public void fromReplicas(String host, RequestCounters delivered) {
    fromService(host, delivered, REPLICA_BLOCKS, REPLICA_BYTES);
  }

  private synchronized void fromService(
      String host, RequestCounters delivered, String blocksName, String bytesName) {
    long blocks = 0;
    long bytes = 0;
    for (Fabric fabric : Fabric.values()) {
      blocks += delivered.blocks(fabric);
      bytes += delivered.bytes(fabric);
    }
    if (blocks + bytes == 0) {
      return;
    }
    Map<String, Long> figures = of(services, host, MAX_SERVICES);
    figures.merge(blocksName, blocks, Long::sum);
    figures.merge(bytesName, bytes, Long::sum);
  }

  /** Blocks of {@code shuffle} were left to Spark's own fetch. */
  public synchronized void fellBack(int shuffle, int blocks) {
    shuffle(shuffle).merge(FALLBACK_BLOCKS, (long) blocks, Long::sum);
  }

  private Map<String, Long> shuffle(int id) {
    return of(shuffles, id, MAX_SHUFFLES);
  }

  /** The figures of {@code key}; new ones take the place of the oldest where there are {@code max}. */
  private static <K> Map<String, Long> of(Map<K, Map<String, Long>> all, K key, int max) {
    Map<String, Long> known = all.get(key);
    if (known == null) {
      if (all.size() >= max) {
        Iterator<K> oldest = all.keySet().iterator();
        oldest.next();
        oldest.remove();
      }
      known = new TreeMap<>();
      all.put(key, known);
    }
    return known;
  }

  private PeerFigures peer(String name) {
    PeerFigures known = peers.get(name);
    if (known == null) {
      if (peers.size() >= MAX_PEERS) {
        List<PeerFigures> kept = slowest(Report.MAX_PEERS);
        peers.clear();
        kept.forEach(peer -> peers.put(peer.peer, peer));
      }
      known = new PeerFigures();
      known.peer = name;
      peers.put(name, known);
    }
    return known;
  }

  /** Removes and returns the figures of up to {@code max} shuffles. */
  synchronized Map<Integer, Map<String, Long>> drainShuffles(int max) {
    return drain(shuffles, max);
  }

  /** Removes and returns the figures of the node services of up to {@code max} hosts. */
  synchronized Map<String, Map<String, Long>> drainServices(int max) {
    return drain(services, max);
  }

  private static <K> Map<K, Map<String, Long>> drain(Map<K, Map<String, Long>> from, int max) {
    Map<K, Map<String, Long>> taken = new LinkedHashMap<>();
    Iterator<Map.Entry<K, Map<String, Long>>> rest = from.entrySet().iterator();
    while (taken.size() < max && rest.hasNext()) {
      Map.Entry<K, Map<String, Long>> next = rest.next();
      taken.put(next.getKey(), next.getValue());
      rest.remove();
    }
    return taken;
  }

  /** The peers with the longest request so far, longest first. */
  public synchronized List<PeerFigures> slowest(int max) {
    List<PeerFigures> all = new ArrayList<>(peers.values());
    all.sort(Comparator.comparingLong((PeerFigures peer) -> -peer.slowestNanos));
    List<PeerFigures> copies = new ArrayList<>();
    for (PeerFigures peer : all.subList(0, Math.min(max, all.size()))) {
      copies.add(peer.copy());
    }
    return copies;
  }
}
