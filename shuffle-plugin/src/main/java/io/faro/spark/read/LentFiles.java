package io.faro.spark.read;

import io.faro.Endpoint;
import io.faro.rows.FilePart;
import java.io.IOException;
import java.util.concurrent.ExecutionException;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.storage.BlockManagerId;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Another executor's, lent by the node service of this host, which keeps them. The executor may have ended. The
 * endpoint holds a bounded number of them open: one that it has closed is borrowed again. What is lent no more, or
 * turns out to be damaged, comes over the network.
 */
final class LentFiles implements LocalFiles {
  private static final Logger LOG = LoggerFactory.getLogger(LentFiles.class);
  /** Map outputs that are borrowed with the one that is needed: as many as one message of the service brings. */
  private static final int AHEAD = 126;

  private final BlockManagerId address;
  private final Lender lender;
  private final Endpoint endpoint;
  private final PartFetch network;

  LentFiles(BlockManagerId address, Lender lender, Endpoint endpoint, PartFetch network) {
    this.address = address;
    this.lender = lender;
    this.endpoint = endpoint;
    this.network = network;
  }

  @Override
  public BlockManagerId address() {
    return address;
  }

  @Override
  public boolean resolve(Parts parts, int i) {
    return lender.borrow(parts.shuffle, parts.maps(i, AHEAD))[0];
  }

  @Override
  public ManagedBuffer bySpark(Parts parts, int i) throws IOException {
    FilePart part = find(parts, i);
    if (part == null && resolve(parts, i)) {
      part = find(parts, i);
    }
    return part == null ? fetched(parts, i, false) : new LentPart(part, () -> resolve(parts, i));
  }

  private FilePart find(Parts parts, int i) {
    return FilePart.find(endpoint, parts.shuffle, parts.map(i), parts.start(i), parts.end(i));
  }

  @Override
  public boolean hasOtherWay() {
    return true;
  }

  @Override
  public ManagedBuffer otherWay(Parts parts, int i, String problem, boolean corrupt) throws IOException {
    if (corrupt) {
      LOG.warn("Faro: block {} of {} is corrupt ({}) and is fetched once more", parts.id(i), address, problem);
    } else {
      LOG.debug("Faro: block {} of {} is not read from lent files: {}", parts.id(i), address, problem);
    }
    return fetched(parts, i, corrupt);
  }

  /** A copy on the heap: there are few of these, and nothing has to be released when the task ends. */
  private ManagedBuffer fetched(Parts parts, int i, boolean again) throws IOException {
    ManagedBuffer bytes;
    try {
      bytes = network.fetch(address, parts, i, again);
    } catch (ExecutionException e) {
      throw new IOException("not fetched over the network: " + e.getCause(), e.getCause());
    }
    try {
      return FetchedPart.copy(bytes);
    } finally {
      bytes.release();
    }
  }

  @Override
  public void count(ShuffleReadMetricsReporter metrics, long parts, long bytes) {
    LocalFiles.super.count(metrics, parts, bytes);
    lender.read(parts, bytes);
  }
}
