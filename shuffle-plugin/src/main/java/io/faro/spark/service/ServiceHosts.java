package io.faro.spark.service;

import io.faro.Nullable;
import io.faro.service.NodeService;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The node services of the application, as an executor knows them: their list, and which one keeps the outputs of which
 * executor. So it can calculate which other services have copies of an output.
 */
public final class ServiceHosts {
  /** Executors come and go for months. */
  private static final int MAX_EXECUTORS = 65_536;
  /**
   * Services that are asked for an output beyond the number of its copies. Where hosts have joined since it was copied,
   * its copies are further down.
   */
  private static final int MORE = 2;
  private static final int[] NONE = {};

  private final int replicas;
  // All that follows is guarded by this.
  private final HostList list = new HostList();
  /** By executor: the place of the service that keeps its outputs. */
  private final Map<String, Integer> places = new LinkedHashMap<String, Integer>() {
    private static final long serialVersionUID = 1L;

    @Override
    protected boolean removeEldestEntry(Map.Entry<String, Integer> eldest) {
      return size() > MAX_EXECUTORS;
    }
  };

  public ServiceHosts(int replicas) {
    this.replicas = replicas;
  }

  /** Copies of each map output on other hosts. */
  public int replicas() {
    return replicas;
  }

  synchronized int version() {
    return list.version();
  }

  synchronized int size() {
    return list.size();
  }

  /** Takes changes from the driver, and returns the new cards by place. */
  synchronized Map<Integer, byte[]> take(byte[] changes) throws IOException {
    return list.take(changes);
  }

  /** All cards by place. */
  synchronized Map<Integer, byte[]> all() {
    Map<Integer, byte[]> all = new LinkedHashMap<>();
    for (int i = 0; i < list.size(); i++) {
      all.put(i, list.card(i));
    }
    return all;
  }

  /** The card of the service at that place; null where no card is known. */
  @Nullable public synchronized byte[] card(int place) {
    return place < list.size() && list.card(place).length > 0 ? list.card(place) : null;
  }

  /** The service at that place keeps the outputs of the executor. */
  public synchronized void keeps(String executor, int place) {
    places.put(executor, place);
  }

  /** The places of services that may have a copy of an output of the executor, in the order in which to ask them. */
  public synchronized int[] copiesOf(String executor, int shuffle, long map) {
    Integer source = places.get(executor);
    if (source == null || replicas == 0) {
      return NONE;
    }
    return NodeService.placement(list.places().toArray(), source, shuffle, map, replicas + MORE);
  }
}
