package io.faro.spark.read;

import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.storage.BlockManagerId;

/** Parts of one reader that were to be read from lent files, and are fetched instead. For one thread. */
final class RefusedLoans {
  private Map<BlockManagerId, Parts> all = new LinkedHashMap<>();

  void add(BlockManagerId address, Parts from, int i) {
    all.computeIfAbsent(address, key -> new Parts(from.shuffle)).add(from, i);
  }

  boolean isEmpty() {
    return all.isEmpty();
  }

  /** Returns the parts by executor, and forgets them. */
  Map<BlockManagerId, Parts> take() {
    Map<BlockManagerId, Parts> taken = all;
    all = new LinkedHashMap<>();
    return taken;
  }
}
