package io.faro.spark.read;

import java.io.IOException;
import java.util.HashSet;
import java.util.Set;
import java.util.function.BooleanSupplier;
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
  /**
   * How often the files of one part are borrowed before the part is left to the network. A task that is not scheduled
   * between its borrowing and its reading may find that other tasks have borrowed so much that its files were closed.
   */
  static final int TRIES = 8;

  private final BlockManagerId address;
  private final LoanClient lender;
  private final LentPart.Files open;
  private final RefusedLoans notLent;
  /** Map outputs of this reader that the service has refused. */
  private final Set<Long> refused = new HashSet<>();
  /** The map output that was borrowed last, with those after it; {@code null}: none. */
  private Long borrowed;

  /** {@code open}: those of the endpoint that {@code lender} borrows for. */
  LentFiles(BlockManagerId address, LoanClient lender, LentPart.Files open, RefusedLoans notLent) {
    this.address = address;
    this.lender = lender;
    this.open = open;
    this.notLent = notLent;
  }

  @Override
  public BlockManagerId address() {
    return address;
  }

  @Override
  public int tries() {
    return TRIES;
  }

  /**
   * A map output that was refused is not asked for again: thousands of questions would cost more than the fetch. One
   * that is asked for again was closed meanwhile, and is borrowed alone, so that it closes no other one but the oldest.
   * No file is held while this waits for the service, so readers never wait for each other's files.
   */
  @Override
  public boolean resolve(Parts parts, int i) {
    Long map = parts.map(i);
    if (refused.contains(map)) {
      return false;
    }
    long[] maps = parts.maps(i, map.equals(borrowed) ? 1 : AHEAD);
    borrowed = map;
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
    LentPart.Bytes[] part = {null};
    BooleanSupplier finds = () -> {
      part[0] = find(parts, i);
      return part[0] != null;
    };
    if (!whileBorrowing(parts, i, finds)) {
      throw new IOException("the node service lends its file no more, or the file does not have it");
    }
    return new LentPart(part[0], read -> whileBorrowing(parts, i, read));
  }

  /** Returns whether {@code read} has succeeded, before which a part's files are borrowed again, in bounds. */
  private boolean whileBorrowing(Parts parts, int i, BooleanSupplier read) {
    boolean done = read.getAsBoolean();
    for (int tries = 0; !done && tries < TRIES && resolve(parts, i); tries++) {
      done = read.getAsBoolean();
    }
    return done;
  }

  private LentPart.Bytes find(Parts parts, int i) {
    return open.find(parts.shuffle, parts.map(i), parts.start(i), parts.end(i));
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
