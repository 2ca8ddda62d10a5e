package io.faro.spark.read.places;

import io.faro.BlockIds;
import java.util.Arrays;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.ShuffleBlockBatchId;
import org.apache.spark.storage.ShuffleBlockId;

/**
 * Parts of map outputs of one shuffle, each some consecutive partitions of one map output: their ids, and what Spark
 * knows of them.
 */
public final class Parts {
  public final int shuffle;
  public final BlockIds ids = new BlockIds();
  private long bytes;
  private int[] mapIndices = new int[8];
  private long[] sizes = new long[8];
  private boolean[] batches = new boolean[8];

  public Parts(int shuffle) {
    this.shuffle = shuffle;
  }

  public int count() {
    return ids.count();
  }

  /** Spark's estimate of their bytes. */
  long bytes() {
    return bytes;
  }

  public long map(int i) {
    return ids.map(i);
  }

  /** The map task's position in its stage. */
  public int mapIndex(int i) {
    return mapIndices[i];
  }

  public int start(int i) {
    return ids.start(i);
  }

  /** Last partition, exclusive. */
  public int end(int i) {
    return ids.end(i);
  }

  /** Spark's estimate of its bytes. */
  public long size(int i) {
    return sizes[i];
  }

  /** The map outputs of the parts from {@code i} on, each once, {@code max} at most. */
  long[] maps(int i, int max) {
    long[] distinct = new long[Math.min(max, count() - i)];
    int found = 0;
    for (int at = i; at < count() && (found < max || map(at) == map(at - 1)); at++) {
      if (at == i || map(at) != map(at - 1)) {
        distinct[found++] = map(at);
      }
    }
    return Arrays.copyOf(distinct, found);
  }

  /** Appends a block; {@code merge}: to the last part, if that is of the same map output. */
  public void add(long map, int mapIndex, int start, int end, long size, boolean merge) {
    bytes += size;
    int last = count() - 1;
    if (merge && last >= 0 && map(last) == map) {
      ids.extendLast(end);
      sizes[last] += size;
      return;
    }
    append(map, mapIndex, start, end, size, merge);
  }

  /** Appends part {@code i} of {@code from}. */
  public void add(Parts from, int i) {
    bytes += from.sizes[i];
    append(from.map(i), from.mapIndices[i], from.start(i), from.end(i), from.sizes[i], from.batches[i]);
  }

  private void append(long map, int mapIndex, int start, int end, long size, boolean batch) {
    int at = count();
    if (at == sizes.length) {
      mapIndices = Arrays.copyOf(mapIndices, 2 * at);
      sizes = Arrays.copyOf(sizes, 2 * at);
      batches = Arrays.copyOf(batches, 2 * at);
    }
    ids.add(shuffle, map, start, end);
    mapIndices[at] = mapIndex;
    sizes[at] = size;
    batches[at] = batch;
  }

  /** One of the parts. */
  public Parts only(int i) {
    Parts one = new Parts(shuffle);
    one.add(this, i);
    return one;
  }

  public BlockId id(int i) {
    return batches[i]
        ? new ShuffleBlockBatchId(shuffle, map(i), start(i), end(i))
        : new ShuffleBlockId(shuffle, map(i), start(i));
  }
}
