package io.faro.spark.read.groups;

import io.faro.Nullable;
import io.faro.spark.read.places.Parts;
import java.io.IOException;
import java.io.InputStream;
import java.util.zip.CheckedInputStream;
import java.util.zip.Checksum;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.shuffle.BlockStoreClient;
import org.apache.spark.network.shuffle.checksum.Cause;
import org.apache.spark.network.shuffle.checksum.ShuffleChecksumHelper;
import org.apache.spark.shuffle.FetchFailedException;
import org.apache.spark.storage.BlockManagerId;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Fetch failures, as Spark's fetch iterator reports them: with the exact block, and of a corrupt one with the diagnosis
 * in Spark's words, for which users' alerts look.
 */
public final class PartFailure {
  private static final Logger LOG = LoggerFactory.getLogger(PartFailure.class);
  private static final int CHUNK_BYTES = 8 << 10;

  private final BlockStoreClient client;
  /** Null if map outputs have no checksums. */
  @Nullable private final String checksum;

  /** {@code client}: asks the owner of a corrupt block. */
  public PartFailure(BlockStoreClient client, String checksum) {
    this.client = client;
    this.checksum = checksum;
  }

  /** Ends the stage's attempt: Spark then computes the map output anew. */
  public FetchFailedException failed(BlockManagerId address, Parts parts, int i, String problem, Throwable cause) {
    return failure(address, parts, i, "Block " + parts.id(i) + ": " + problem, cause);
  }

  private static FetchFailedException failure(
      BlockManagerId address, Parts parts, int i, String message, Throwable cause) {
    Throwable why = cause == null ? new IOException(message) : cause;
    return new FetchFailedException(
        address, parts.shuffle, parts.map(i), parts.mapIndex(i), parts.start(i), message, why);
  }

  /** The same for a corrupt part; {@code bytes} may be {@code null}. */
  public FetchFailedException corrupt(BlockManagerId address, Parts parts, int i, String problem, ManagedBuffer bytes) {
    Long sum = null;
    try {
      sum = checksum == null || bytes == null || !alone(parts, i) ? null : checksum(bytes);
    } catch (IOException | RuntimeException e) {
      LOG.warn("Faro: the corrupt block {} of {} cannot be read again: {}", parts.id(i), address, e.toString());
    }
    return corrupt(address, parts, i, problem, sum);
  }

  /** The same; {@code sum}: the {@link #running} checksum of all bytes, or {@code null}. */
  public FetchFailedException corrupt(BlockManagerId address, Parts parts, int i, String problem, Long sum) {
    String message = diagnosis(address, parts, i, sum) + " (" + problem + ")";
    LOG.warn("Faro: {}, from {}", message, address);
    return failure(address, parts, i, message, null);
  }

  /** For the checksum of a part that can be read only once; null if it has none. */
  @Nullable Checksum running(Parts parts, int i) {
    return checksum == null || !alone(parts, i) ? null : ShuffleChecksumHelper.getChecksumByAlgorithm(checksum);
  }

  /** Returns whether the part is one partition: the file has a checksum for each. */
  private static boolean alone(Parts parts, int i) {
    return parts.end(i) == parts.start(i) + 1;
  }

  /** Compares the bytes' checksum with the one of the map output's file, where the file is. */
  private String diagnosis(BlockManagerId address, Parts parts, int i, Long sum) {
    String corrupted = "Block " + parts.id(i) + " is corrupted";
    if (checksum == null) {
      return corrupted + ", and map outputs have no checksums (spark.shuffle.checksum.enabled)";
    } else if (!alone(parts, i)) {
      return "BlockBatch " + parts.id(i) + " is corrupted but corruption diagnosis is skipped due to lack of shuffle "
          + "checksum support for ShuffleBlockBatchId";
    }
    Cause cause;
    try {
      cause = sum == null ? Cause.UNKNOWN_ISSUE
          : client.diagnoseCorruption(address.host(), address.port(), address.executorId(), parts.shuffle,
              parts.map(i), parts.start(i), sum, checksum);
    } catch (RuntimeException e) {
      LOG.warn("Faro: the corrupt block {} of {} cannot be diagnosed: {}", parts.id(i), address, e.toString());
      cause = Cause.UNKNOWN_ISSUE;
    }
    switch (cause) {
      case UNSUPPORTED_CHECKSUM_ALGORITHM:
        return corrupted + " but corruption diagnosis failed due to unsupported checksum algorithm: " + checksum;
      case CHECKSUM_VERIFY_PASS:
        return corrupted + " but checksum verification passed";
      case UNKNOWN_ISSUE:
        return corrupted + " but the cause is unknown";
      default:
        return corrupted + " due to " + cause;
    }
  }

  private long checksum(ManagedBuffer bytes) throws IOException {
    try (InputStream plain = bytes.createInputStream();
        CheckedInputStream in = new CheckedInputStream(plain, ShuffleChecksumHelper.getChecksumByAlgorithm(checksum))) {
      byte[] chunk = new byte[CHUNK_BYTES];
      while (in.read(chunk) >= 0) {
        // The stream sums up what is read.
      }
      return in.getChecksum().getValue();
    }
  }

  /**
   * Throws {@code exception} as it is; the result is for the compiler: {@code throw PartFailure.raise(e)}. Scala
   * declares no exceptions: some methods of Spark throw checked ones, and overrides of them must too.
   */
  public static RuntimeException raise(Throwable exception) {
    throw PartFailure.<RuntimeException>as(exception);
  }

  @SuppressWarnings("unchecked")
  private static <E extends Throwable> E as(Throwable exception) throws E {
    throw (E) exception;
  }
}
