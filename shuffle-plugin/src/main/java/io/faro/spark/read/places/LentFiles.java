package io.faro.spark.read.places;

import io.faro.Endpoint;
import io.faro.Nullable;
import io.faro.rows.FilePart;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;
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
public final class LentFiles implements LocalFiles {
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
  /** The map output that was borrowed last, with those after it; null if there is none. */
  @Nullable private Long borrowed;

  /** {@code open}: those of the endpoint that {@code lender} borrows for. */
  public LentFiles(BlockManagerId address, LoanClient lender, LentPart.Files open, RefusedLoans notLent) {
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

  /** A part in lent files, which is read as a stream. It holds nothing that would have to be released. */
  public static final class LentPart extends ManagedBuffer {
    /** The open files of an endpoint, which may close them at any time. */
    public interface Files {
      /** Finds a part; null if the files are not open, or do not have it. */
      @Nullable Bytes find(int shuffle, long map, int start, int end);

      /** Those of {@code endpoint}. */
      static Files of(Endpoint endpoint) {
        return (shuffle, map, start, end) -> {
          FilePart part = FilePart.find(endpoint, shuffle, map, start, end);
          return part == null ? null : new Bytes(part.bytes(), part::read);
        };
      }
    }

    /** A part that was found in such files. */
    static final class Bytes {
      final long count;
      final Read read;

      Bytes(long count, Read read) {
        this.count = count;
        this.read = read;
      }
    }

    /** Reads bytes of a part; see {@link FilePart#read}. */
    interface Read {
      /** False: the files are not open any more, or cannot be read. */
      boolean at(long position, byte[] to, int offset, int length);
    }

    private static final int CHUNK_BYTES = 64 << 10;

    private final Bytes part;
    private final Predicate<BooleanSupplier> whileBorrowing;

    /**
     * {@code whileBorrowing} returns whether a read has succeeded, before which it borrows files again that the
     * endpoint has closed meanwhile.
     */
    LentPart(Bytes part, Predicate<BooleanSupplier> whileBorrowing) {
      this.part = part;
      this.whileBorrowing = whileBorrowing;
    }

    @Override
    public long size() {
      return part.count;
    }

    @Override
    public InputStream createInputStream() {
      return new Stream();
    }

    private void read(long position, byte[] to, int length) throws IOException {
      if (!whileBorrowing.test(() -> part.read.at(position, to, 0, length))) {
        throw new IOException("the lent file is not there any more, or cannot be read at " + position
            + " of the part's " + part.count + " bytes");
      }
    }

    @Override
    public ByteBuffer nioByteBuffer() throws IOException {
      byte[] all = new byte[Math.toIntExact(part.count)];
      read(0, all, all.length);
      return ByteBuffer.wrap(all);
    }

    @Override
    public ManagedBuffer retain() {
      return this;
    }

    @Override
    public ManagedBuffer release() {
      return this;
    }

    /** It is not sent to anyone. */
    @Override
    public Object convertToNetty() {
      throw new UnsupportedOperationException("a lent part is read here");
    }

    /** Abstract in ManagedBuffer from Spark 4.0 on, absent before: hence no annotation. */
    public Object convertToNettyForSsl() {
      return convertToNetty();
    }

    private final class Stream extends ArrayStream {
      private final byte[] chunk = new byte[(int) Math.min(CHUNK_BYTES, part.count)];
      /** Bytes of the part that are or were in the chunk, and those of the chunk that were not handed out. */
      private long position;
      private int left;
      private int filled;

      @Override
      public int read(byte[] to, int offset, int length) throws IOException {
        if (length == 0) {
          return 0;
        }
        if (left == 0 && !fill()) {
          return -1;
        }
        int bytes = Math.min(length, left);
        System.arraycopy(chunk, filled - left, to, offset, bytes);
        left -= bytes;
        return bytes;
      }

      private boolean fill() throws IOException {
        filled = (int) Math.min(chunk.length, part.count - position);
        if (filled == 0) {
          return false;
        }
        LentPart.this.read(position, chunk, filled);
        position += filled;
        left = filled;
        return true;
      }

      @Override
      public int available() {
        return (int) Math.min(Integer.MAX_VALUE, left + part.count - position);
      }
    }
  }

  /** Parts of one reader that were to be read from lent files, and are fetched instead. For one thread. */
  public static final class RefusedLoans {
    private Map<BlockManagerId, Parts> all = new LinkedHashMap<>();

    void add(BlockManagerId address, Parts from, int i) {
      all.computeIfAbsent(address, key -> new Parts(from.shuffle)).add(from, i);
    }

    public boolean isEmpty() {
      return all.isEmpty();
    }

    /** Returns the parts by executor, and forgets them. */
    public Map<BlockManagerId, Parts> take() {
      Map<BlockManagerId, Parts> taken = all;
      all = new LinkedHashMap<>();
      return taken;
    }
  }
}
