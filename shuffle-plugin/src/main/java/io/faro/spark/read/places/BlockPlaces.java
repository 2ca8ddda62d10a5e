package io.faro.spark.read.places;

import java.util.Set;
import org.apache.spark.TaskContext;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.BlockManagerId;

/**
 * Decides where a block is read: in this executor's files, in those of another executor of this host, or elsewhere. The
 * same as Spark's fetch iterator decides, except where this executor cannot read another one's directories, and where
 * the node service of this host lends the files.
 */
public final class BlockPlaces implements ReadPlan.Places {
  private final BlockManager blocks;
  private final TaskContext context;
  private final HostDirectories directories;
  private final LoanClient lender;
  /** Executors whose outputs the node service of this host keeps. */
  private final Set<String> near;
  private final String own;

  public BlockPlaces(BlockManager blocks, TaskContext context, HostDirectories directories, LoanClient lender,
      Set<String> near) {
    this.blocks = blocks;
    this.context = context;
    this.directories = directories;
    this.lender = lender;
    this.near = near;
    own = blocks.blockManagerId().executorId();
  }

  /** All blocks come from their executors, also where these are on this host. */
  public static ReadPlan.Places overTheNetwork(BlockManager blocks) {
    return address -> HostDirectories.ofThisHost(blocks, address) ? ReadPlan.Place.HIDDEN : ReadPlan.Place.REMOTE;
  }

  @Override
  public boolean[] lent(BlockManagerId address, Parts parts) {
    return address.executorId().equals(own) || !near.contains(address.executorId())
        ? null : lender.borrow(parts.shuffle, parts.maps(0, parts.count()));
  }

  @Override
  public ReadPlan.Place of(BlockManagerId address) {
    if (address.executorId().equals(own)) {
      return ReadPlan.Place.OWN;
    } else if (address.executorId().equals("fallback")) {
      return ReadPlan.Place.SPARK;
    } else if (!HostDirectories.ofThisHost(blocks, address)) {
      return ReadPlan.Place.REMOTE;
    }
    return directories.of(address, blocks, context) == null ? ReadPlan.Place.HIDDEN : ReadPlan.Place.HOST;
  }
}
