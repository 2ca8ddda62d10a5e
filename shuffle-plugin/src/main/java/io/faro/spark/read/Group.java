package io.faro.spark.read;

import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.storage.ShuffleBlockBatchId;

/**
 * Parts of one executor that Spark's fetch iterator sees as one block, so that its cost per block is paid once for all.
 * A group of one part has that part's id; others have the id of a batch of a map output that cannot exist.
 */
final class Group {
  /** Map ids from here on are numbers of groups: Spark counts its tasks from 0. */
  private static final long FIRST_ID = 1L << 62;

  final BlockManagerId address;
  final Parts parts;
  final BlockId id;

  Group(BlockManagerId address, Parts parts, int number) {
    this.address = address;
    this.parts = parts;
    this.id = parts.count() == 1 ? parts.id(0)
        : new ShuffleBlockBatchId(parts.shuffle, FIRST_ID + number, parts.start(0), parts.start(0) + 1);
  }
}
