package io.faro.spark.read;

import io.faro.Endpoint;
import io.faro.rows.FilePart;
import java.io.IOException;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.storage.BlockManagerId;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Another executor's, lent by the node service of this host, which keeps them. The executor may have ended. The
 * endpoint holds a bounded number of them open: one that it has closed is borrowed again. What is lent no more, or
 * turns out to be damaged, is left to the fetch over the network.
 */
final class LentFiles implements LocalFiles {
  private static final Logger LOG = LoggerFactory.getLogger(LentFiles.class);
  /** Map outputs that are borrowed with the one that is needed: as many as one message of the service brings. */
  private static final int AHEAD = 126;

  private final BlockManagerId address;
  private final Lender lender;
  private final Endpoint endpoint;
  private final NotLent notLent;
  /** Map outputs of this reader that the service has refused. */
  private final Set<Long> refused = new HashSet<>();

  LentFiles(BlockManagerId address, Lender lender, Endpoint endpoint, NotLent notLent) {
    this.address = address;
    this.lender = lender;
    this.endpoint = endpoint;
    this.notLent = notLent;
  }

  @Override
  public BlockManagerId address() {
    return address;
  }

  /** A map output that was refused is not asked for again: thousands of questions would cost more than the fetch. */
  @Override
  public boolean resolve(Parts parts, int i) {
    if (refused.contains(parts.map(i))) {
      return false;
    }
    long[] maps = parts.maps(i, AHEAD);
    boolean[] lent = lender.borrow(parts.shuffle, maps);
    for (int at = 0; at < maps.length; at++) {
      if (!lent[at]) {
        refused.add(maps[at]);
      }
    }
    return lent[0];
  }

  @Override
  public ManagedBuffer bySpark(Parts parts, int i) throws IOException {
    FilePart part = find(parts, i);
    if (part == null && resolve(parts, i)) {
      part = find(parts, i);
    }
    if (part == null) {
      throw new IOException("the node service lends its file no more, or the file does not have it");
    }
    return new LentPart(part, () -> resolve(parts, i));
  }

  private FilePart find(Parts parts, int i) {
    return FilePart.find(endpoint, parts.shuffle, parts.map(i), parts.start(i), parts.end(i));
  }

  @Override
  public boolean leave(Parts parts, int i, String problem, boolean corrupt) {
    if (corrupt) {
      LOG.warn("Faro: block {} of {} is corrupt ({}) and is fetched once more", parts.id(i), address, problem);
    } else {
      LOG.debug("Faro: block {} of {} is not read from lent files: {}", parts.id(i), address, problem);
    }
    notLent.add(address, parts, i);
    return true;
  }

  @Override
  public boolean lost(Parts parts, int i, String problem) {
    LOG.debug("Faro: the rest of block {} of {} is not read from lent files: {}", parts.id(i), address, problem);
    return true;
  }

  @Override
  public void count(ShuffleReadMetricsReporter metrics, long parts, long bytes) {
    LocalFiles.super.count(metrics, parts, bytes);
    lender.read(parts, bytes);
  }
}
