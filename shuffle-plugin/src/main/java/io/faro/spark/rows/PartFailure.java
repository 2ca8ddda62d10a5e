package io.faro.spark.rows;

import java.io.IOException;
import java.io.InputStream;
import java.util.zip.CheckedInputStream;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.shuffle.checksum.Cause;
import org.apache.spark.network.shuffle.checksum.ShuffleChecksumHelper;
import org.apache.spark.shuffle.FetchFailedException;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.BlockManagerId;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Fetch failures, as Spark's fetch iterator reports them: with the exact block, and the diagnosis of a corrupt one. */
final class PartFailure {
  private static final Logger LOG = LoggerFactory.getLogger(PartFailure.class);
  private static final int CHUNK_BYTES = 8 << 10;

  private final BlockManager blocks;
  /** {@code null}: map outputs have no checksums. */
  private final String checksum;

  PartFailure(BlockManager blocks, String checksum) {
    this.blocks = blocks;
    this.checksum = checksum;
  }

  /** Ends the stage's attempt: Spark then computes the map output anew. */
  FetchFailedException failed(BlockManagerId address, Parts parts, int i, String problem, Throwable cause) {
    String message = "Block " + parts.id(i) + ": " + problem;
    Throwable why = cause == null ? new IOException(message) : cause;
    return new FetchFailedException(
        address, parts.shuffle, parts.map(i), parts.mapIndex(i), parts.start(i), message, why);
  }

  /** The same for a corrupt part; {@code bytes} may be {@code null}. */
  FetchFailedException corrupt(BlockManagerId address, Parts parts, int i, String problem, ManagedBuffer bytes) {
    return failed(address, parts, i, "corrupt, " + problem + diagnosis(address, parts, i, bytes), null);
  }

  /** Compares the bytes' checksum with the one of the map output's file, where the file is. */
  private String diagnosis(BlockManagerId address, Parts parts, int i, ManagedBuffer bytes) {
    // The file has a checksum for each partition.
    if (checksum == null || bytes == null || parts.end(i) != parts.start(i) + 1) {
      return "";
    }
    Cause cause;
    try {
      long sum = checksum(bytes);
      cause = blocks.blockStoreClient().diagnoseCorruption(address.host(), address.port(), address.executorId(),
          parts.shuffle, parts.map(i), parts.start(i), sum, checksum);
    } catch (IOException | RuntimeException e) {
      LOG.warn("Faro: the corrupt block {} of {} cannot be diagnosed: {}", parts.id(i), address, e.toString());
      cause = Cause.UNKNOWN_ISSUE;
    }
    return "; diagnosis: " + cause;
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
}
