package io.faro.spark.read.places;

import java.util.Arrays;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.ShuffleBlockBatchId;
import org.apache.spark.storage.ShuffleBlockId;

/** Parts of map outputs of one shuffle; a part is some consecutive partitions of one map output. */
public final class Parts {
  public final int shuffle;
  private int count;
  private long bytes;
  private long[] maps = new long[8];
  private int[] mapIndices = new int[8];
  private int[] starts = new int[8];
  private int[] ends = new int[8];
  private long[] sizes = new long[8];
  private boolean[] batches = new boolean[8];

  public Parts(int shuffle) {
    this.shuffle = shuffle;
  }

  public int count() {
    return count;
  }

  /** Spark's estimate of their bytes. */
  long bytes() {
    return bytes;
  }

  public long map(int i) {
    return maps[i];
  }

  /** The map task's position in its stage. */
  public int mapIndex(int i) {
    return mapIndices[i];
  }

  public int start(int i) {
    return starts[i];
  }

  /** Last partition, exclusive. */
  public int end(int i) {
    return ends[i];
  }

  /** Spark's estimate of its bytes. */
  public long size(int i) {
    return sizes[i];
  }

  public long[] maps() {
    return maps;
  }

  /** The map outputs of the parts from {@code i} on, each once, {@code max} at most. */
  long[] maps(int i, int max) {
    long[] distinct = new long[Math.min(max, count - i)];
    int found = 0;
    for (int at = i; at < count && (found < max || maps[at] == maps[at - 1]); at++) {
      if (at == i || maps[at] != maps[at - 1]) {
        distinct[found++] = maps[at];
      }
    }
    return Arrays.copyOf(distinct, found);
  }

  public int[] starts() {
    return starts;
  }

  public int[] ends() {
    return ends;
  }

  /** Appends a block; {@code merge}: to the last part, if that is of the same map output. */
  public void add(long map, int mapIndex, int start, int end, long size, boolean merge) {
    bytes += size;
    if (merge && count > 0 && maps[count - 1] == map) {
      ends[count - 1] = end;
      sizes[count - 1] += size;
      return;
    }
    append(map, mapIndex, start, end, size, merge);
  }

  /** Appends part {@code i} of {@code from}. */
  public void add(Parts from, int i) {
    bytes += from.sizes[i];
    append(from.maps[i], from.mapIndices[i], from.starts[i], from.ends[i], from.sizes[i], from.batches[i]);
  }

  private void append(long map, int mapIndex, int start, int end, long size, boolean batch) {
    if (count == maps.length) {
      maps = Arrays.copyOf(maps, 2 * count);
      mapIndices = Arrays.copyOf(mapIndices, 2 * count);
      starts = Arrays.copyOf(starts, 2 * count);
      ends = Arrays.copyOf(ends, 2 * count);
      sizes = Arrays.copyOf(sizes, 2 * count);
      batches = Arrays.copyOf(batches, 2 * count);
    }
    maps[count] = map;
    mapIndices[count] = mapIndex;
    starts[count] = start;
    ends[count] = end;
    sizes[count] = size;
    batches[count] = batch;
    count++;
  }

  /** One of the parts. */
  public Parts only(int i) {
    Parts one = new Parts(shuffle);
    one.add(this, i);
    return one;
  }

  public BlockId id(int i) {
    return batches[i]
        ? new ShuffleBlockBatchId(shuffle, maps[i], starts[i], ends[i])
        : new ShuffleBlockId(shuffle, maps[i], starts[i]);
  }
}
